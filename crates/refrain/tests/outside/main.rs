//! Loops that are seen and published through programs that others ship: the dashboard in a real browser, pull requests by the
//! real `gh`. `cargo xtask e2e browser` and `cargo xtask e2e forge` run them; what is named `main_job` is the smoke test.

#[cfg(test)]
mod browser;
#[cfg(test)]
mod forge;
