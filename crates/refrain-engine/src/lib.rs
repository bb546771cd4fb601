//! The imperative shell: it asks the core for the next step, does it, and records what happened. Nothing is decided
//! here.
//!
//! [`Service`] is the interface for every surface: start, resume, status, list, ask, follow. A [`Runner`] drives one
//! loop: one select, one handler; everything else executes a step or shows an event.
//!
//! `examples/start_and_follow.rs` starts a loop from Rust and follows it to its end, and says why each step is there.

#![warn(clippy::wildcard_enum_match_arm)]

mod blocking;
mod child;
mod clock;
mod doctor;
mod driver;
mod error;
mod git_steps;
mod host;
mod init;
mod memory;
mod move_error;
mod observe;
mod plan;
mod plugin;
pub mod sandbox;
mod service;
mod session;

pub use clock::now;
pub use doctor::{Autostart, AutostartChange, interrupted_by_reboot, remember_this_boot};
pub use driver::account::{SharedAccounts, SharedGate};
pub use driver::budget::SharedMoney;
pub use driver::lease::{DriveEnd, Lease};
pub use driver::liveness::is_driven_by;
pub use driver::runner::Runner;
pub use driver::signals::{SignalRequests, Signals, hangup, next_of};
pub use error::{EngineError, GateProgramError, GateProgramFault, LoopRequest, PluginError, chain};
pub use git_steps::differences::{ChangeSize, Differences, LoopPatch};
pub use git_steps::discard::{DiscardOutcome, DiscardRefusal, KeptWork};
pub use git_steps::gc::DEMO_PREFIX;
pub use git_steps::git_words::works_in;
pub use git_steps::merge::own_branch::OwnBranch;
pub use git_steps::merge::{MergeKind, MergeOptions, MergeRefusal, MergedBranch, UnverifiedCause};
pub use git_steps::moving::{MovedAway, MovedHere, Reading, RemoteWitness, SandboxChange};
pub use git_steps::work::MANY_FILES;
pub use host::Host;
pub use init::{Choices, Extras, FileAction, GitUse, PreparedFile};
pub use memory::{MemoryCollector, ReflectionOutcome, RememberError, Remembrance};
pub use move_error::MoveError;
pub use observe::detail::{Changes, DetailChange, DetailView, Screen};
pub use observe::follow::{FollowEvent, Follower};
pub use observe::journal_watcher::{JournalWatcher, LoopRef, News, recorded_since};
pub use observe::known_loops::KnownLoops;
pub use observe::live_list::{Entry, ListRow, LiveList};
pub use observe::notifier::{Audience, Notifier};
pub use observe::slack::{SlackTokenError, SlackTokens};
pub use observe::telemetry::{Exporter, Telemetry, TelemetryError};
pub use observe::webhook::{Webhook, WebhookError};
pub use plan::verify::GateNotice;
pub use plan::{FleetAsk, PlanFollower, PlanRunner, TaskFleet, Texts, read_told, usual_jobs};
pub use plugin::{PluginChange, PluginWork};
pub use refrain_agents::acp::Bridge as AcpBridge;
pub use refrain_agents::generic::{NoProgram, prompt_limit};
pub use refrain_agents::hook;
pub use refrain_agents::output_parser::{ladder, objection, own_model, without_model};
pub use refrain_forge::http;
pub use refrain_git::GitError;
pub use refrain_proc::detach::{DetachedRunner, READY as DETACHED_READY, leave_terminal};
pub use refrain_proc::lease::{LeaseDeadline, LeaseTime};
pub use refrain_proc::limits::{own as own_limits, raise_open_files};
pub use refrain_proc::output::read as read_log;
pub use refrain_proc::tool::{end_tools, heed_signals, leave_signals};
pub use refrain_proc::{OWN_PROGRAM, keeper};
pub use refrain_store::access::keys::{Key, Keys, Pass};
pub use refrain_store::access::trust::{Content, Trust, TrustedContent};
pub use refrain_store::catalog::{
    ApprovalFact, BlockedFact, Brief, Caps, Detail, Facts, GateFact, TotalUsage,
};
pub use refrain_store::journal::{Mark, Unreplicated, Witness};
pub use refrain_store::memory::{JudgeCalls, MemoryError, MemoryFilter};
pub use refrain_store::outbox::slack::{Delivery, Pending, StopRequest, Talk};
pub use refrain_store::project::archive::id_of as id_of_archived;
pub use refrain_store::project::layout::AttemptDir;
pub use refrain_store::{
    DiskError, JournalError, Project, check_folder, config, create, tasks, write_atomic,
};
pub use service::by_kind::{ByKind, PlanReport};
pub use service::catalog::{CostedList, ListEntry};
pub use service::detect_gates::StartOffer;
pub use service::evolution::{EvolutionError, ProposalEffect};
pub use service::import_export::{ForeignError, found_in, write_exported};
pub use service::logs::whole_logs::{Excerpts, LogFolder, LogStore};
pub use service::logs::{LogKind, Part, TextPart, goal};
pub use service::mirror::{foreign_lock, left_to_others, plan_left_to_others};
pub use service::requests::SlowRunner;
pub use service::search::SearchResult;
pub use service::usage::{UnreportedUsage, UsageScope, UsageSummary};
pub use service::{LoopLocation, Service};
pub use session::{Activity, Turn, TurnReport};

/// Tools that Refrain runs for itself, like git.
pub mod tool {
    pub use refrain_proc::program::in_path_outside;
    pub use refrain_proc::tool::{Tool, ToolError, ToolOutput, run};
}
