//! Loops seen and published through programs of others: the dashboard in a real browser, pull requests by the real
//! `gh`. `cargo xtask e2e browser` and `cargo xtask e2e forge` run them; tests named `main_job` are the smoke test.

#[cfg(test)]
mod browser;
#[cfg(test)]
mod forge;
