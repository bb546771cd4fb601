//! The imperative shell: it asks the core what comes next, does it, and records what happened.
//!
//! [`Service`] is the one door for every surface: start, resume, status, list, ask, follow. A [`Runner`] drives one loop:
//! one select, one handler; everything else executes a step or shows an event.
//!
//! `examples/start_and_follow.rs` starts a loop from Rust and follows it to its end, and says why each step is there.

#![warn(clippy::wildcard_enum_match_arm)]

mod account;
mod asked;
mod asking;
mod attempt;
mod blocking;
mod budget;
mod catalog;
mod child;
mod clock;
mod crew;
mod differences;
mod dispatcher;
mod doctor;
mod doorbell;
mod drive;
mod error;
mod evolution;
mod file_watch;
mod follow;
mod foreign;
mod gate_programs;
mod git_words;
mod glance;
mod herald;
mod host;
mod init;
mod judge;
mod judge_spec;
mod keeping;
mod lifecycle;
mod liveness;
mod locks;
mod looking;
mod lookout;
mod memory;
mod mirror;
mod notes;
mod offer;
mod pins;
mod plan;
mod plugin;
mod pool;
mod protection;
mod proving_ground;
mod publish;
mod pulse;
mod quotes;
mod recovery;
mod redact;
mod report;
mod repository;
mod roster;
mod runner;
mod seal;
mod searching;
mod service;
mod session;
mod shared_files;
mod signals;
mod slack;
mod telemetry;
mod usage;
mod webhook;
mod work;

pub use asking::SlowRunner;
pub use catalog::Listed;
pub use clock::now;
pub use differences::Differences;
pub use doctor::{Autostart, AutostartChange, interrupted_by_reboot, remember_this_boot};
pub use error::{EngineError, GateProgramError, GateProgramFault, LoopRequest, PluginError, chain};
pub use evolution::{EvolutionError, Proposed};
pub use follow::{Follower, Sight};
pub use foreign::{ForeignError, found_in, write_exported};
pub use glance::{Changed, Changes, Glance, Screen};
pub use herald::{Audience, Herald};
pub use host::Host;
pub use init::{Extras, Fate, Prepared};
pub use liveness::is_driven_by;
pub use looking::{Heard, Kept, Part};
pub use lookout::{Lookout, News, Whose, recorded_since};
pub use memory::{Afterwards, Recollection, RememberError, Remembrance};
pub use mirror::{foreign_lock, left_to_others};
pub use plan::{PlanFollower, PlanRunner, Texts, read_told, usual_jobs};
pub use plugin::{PluginChange, PluginWork};
pub use refrain_agents::acp::Bridge as AcpBridge;
pub use refrain_agents::ear::{ladder, objection};
pub use refrain_agents::generic::{NoProgram, prompt_limit};
pub use refrain_agents::hook;
pub use refrain_git::GitError;
pub use refrain_git::http;
pub use refrain_proc::OWN_PROGRAM;
pub use refrain_proc::detach::{Detached, READY as DETACHED_READY, leave_terminal};
pub use refrain_proc::keeper;
pub use refrain_proc::limits::raise_open_files;
pub use refrain_proc::output::read as read_log;
pub use refrain_store::catalog::{Brief, Detail};
pub use refrain_store::journal::Mark;
pub use refrain_store::keys::{Key, Keys, Pass};
pub use refrain_store::layout::AttemptDir;
pub use refrain_store::memory::{JudgesAsked, MemoryError, Which as WhichMemories};
pub use refrain_store::slack::{Pending, Sent, StopAsked, Talk};
pub use refrain_store::trust::{Content, Trust, Trusted};
pub use refrain_store::{DiskError, JournalError, Project, config, tasks};
pub use roster::{Entry, Glimpse, Roster, RosterNews};
pub use runner::Runner;
pub use searching::Searched;
pub use service::{Located, Service};
pub use session::{Activity, Said, Turn};
pub use signals::{Signals, Wishes};
pub use slack::{SlackTokenError, SlackTokens};
pub use telemetry::{Exporter, Telemetry, TelemetryError};
pub use usage::{Untold, Used};
pub use webhook::{Webhook, WebhookError};

/// Tools that Refrain runs for itself, like git.
pub mod tool {
    pub use refrain_proc::tool::{Tool, ToolError, at_terminal, run};
}
