//! The report on a loop: what was asked and claimed, what proved it, what it took, and how a later reader can check all
//! that. It is made from the journal's events and from what only the shell can find out (git's answers, the ends of
//! logs). Made again from the same journal it is the same, so it can be checked. The binary renders it on a terminal or
//! a page.

mod builder;
mod compare;
mod history;
mod object;
mod redact;
mod verdict;

pub use builder::{ReportFacts, Work, is_open, make, tree, work};
pub use compare::{Differences, ReportFile};
pub use history::{AttemptFile, KeptFile, Trail};
pub use object::{
    AgentRow, BaseReport, Change, ClaimMade, CommitMade, Critique, FileChange, Files, GateProof, GoalReport,
    JournalMark, Log, ProofReport, Protection, RefusedClaimRow, Report, SCHEMA, SealedFile, UsageByRole,
    Versions,
};
pub use verdict::{Check, Outcome, Subject, Verdict};
