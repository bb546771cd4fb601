//! Tests with real git in temporary folders, with a home of their own.

#[cfg(test)]
#[cfg(test)]
mod candidates;
#[cfg(test)]
mod commits;
#[cfg(test)]
mod forges;
#[cfg(test)]
mod handover;
#[cfg(test)]
mod hooks;
#[cfg(test)]
mod journal_ref;
#[cfg(test)]
mod landing;
#[cfg(test)]
mod place;
#[cfg(test)]
mod publish;
#[cfg(test)]
mod saved;
#[cfg(test)]
mod worktrees;
