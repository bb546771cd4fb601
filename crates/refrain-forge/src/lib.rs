//! The forge of a remote: pull requests, their checks, and merging them. GitHub is reached by `gh`, or by a token
//! without a login of `gh`; GitLab by `glab`. The programs use the user's own login and never prompt. A token is only
//! sent to its host.
//!
//! [`Forge`] is the interface: each action happens once, however often it is requested, because its result is looked
//! up first and again after a lost answer. `github` and `gitlab` know the requests, [`Api`](api) sends them: by
//! [`Program`](program), which runs the tool, or [`Client`](client), which has a token. [`Trouble`] lists the errors,
//! and [`Checks::verdict`] summarizes checks. When to retry, how long to wait and what to do then is not decided
//! here.

mod api;
mod checks;
mod error;
mod github;
mod gitlab;
mod host;
pub mod http;
mod kind;
mod mergeability;
mod place;
mod pull_request;
mod token;

pub use checks::{Check, CheckState, Checks, ChecksSetup, Verdict};
pub use error::{RetryTime, Trouble};
pub use host::Forge;
pub use kind::PullRequestContent;
pub use mergeability::{MergeBlocker, MergeOutcome, Mergeable};
pub use place::RepositoryAddress;
pub use pull_request::{Project, PullRequest, State};
pub use token::{FROM_FILE, Token};
