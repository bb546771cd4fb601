//! A hermetic environment for tests of the program: a home, variables and a repository of their own; sessions with the
//! program that cannot hang; and a check for processes that a sandbox left running. For tests only: on an error every
//! function fails the test with what it saw.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test kit fails the test that uses it, with what it saw"
)]

mod agents;
mod forge;
mod gate;
mod model;
mod npm;
mod ntfy;
mod processes;
mod projects;
mod receiver;
mod redact;
mod run;
mod sandbox;
mod scenario;
mod slack;
mod wait;

pub use agents::{Agent, Real};
pub use forge::{Fault, Forge, HeldRequest, Limit, World};
pub use gate::Gate;
pub use model::{ConnectionEnd, Model, Protocol, Request, Script, TakenTurn, Turn, Usage, login};
pub use npm::{axe, install_axe};
pub use ntfy::{Ntfy, NtfyMessage};
pub use processes::{Survivor, signal_process, survivors};
pub use projects::{Laid, Project};
pub use receiver::{CannedResponse, ReceivedRequest, Receiver};
pub use run::{Invocation, Run, Session};
pub use rustix::process::Signal;
pub use sandbox::{Sandbox, scratch_folder, write};
pub use scenario::play;
pub use slack::{Call, CallFault, Slack, SlackMessage};
pub use wait::{eventually, within};
