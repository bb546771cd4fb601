//! The forge that a remote belongs to: pull requests, their checks, and merging them, with GitHub by `gh` and GitLab by `glab`,
//! in the person's own login, and GitHub by a token where that is all there is. Nobody is asked for anything, and a token is shown
//! to its own host alone.
//!
//! [`Forge`] is what the rest of the program sees: what it does outside is done once, however often it is asked for, as it looks
//! first and looks again where an answer was lost. `github` and `gitlab` say how each is asked, [`Api`](api) asks: by
//! [`Program`](program), which runs the tool, or [`Client`](client), which has a token. [`Trouble`] is what can go wrong, and
//! [`Checks::verdict`] what checks amount to. When to ask again, how long to wait and what to do then is not decided here.

mod api;
mod checks;
mod github;
mod gitlab;
mod host;
pub mod http;
mod kind;
mod merging;
mod place;
mod pull_request;
mod token;
mod trouble;

pub use checks::{Check, CheckState, Checks, Configured, Verdict};
pub use host::Forge;
pub use kind::Opening;
pub use merging::{MergeBlocker, Mergeable, Merged};
pub use place::Place;
pub use pull_request::{Project, PullRequest, State};
pub use token::{FROM_FILE, Token};
pub use trouble::{Trouble, Until};
