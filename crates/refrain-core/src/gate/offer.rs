//! What a project offers to a loop: gates, and what to protect for them.

use super::GateSpec;
use crate::protect::Part;

/// The gates and protections that a repository could have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offer {
    /// Gates, the hard ones first, those of the repository's top before those of its folders.
    pub gates: Vec<GateSpec>,
    /// Globs for `--protect`: what decides whether gates pass.
    pub protect: Vec<String>,
    /// Globs for `--protect-existing`: tests.
    pub protect_existing: Vec<String>,
    /// Parts of manifests that decide as well, if honest work may change the rest.
    pub parts: Vec<Part>,
    /// Folders for [`ProtectSpec::modules`](crate::spec::ProtectSpec::modules).
    pub modules: Vec<String>,
    /// Scripts that gates run and whose texts the listing does not have: with them the offer protects more.
    pub unread: Vec<String>,
    /// What a person should know of this offer, a sentence each. They may hold names of files: data.
    pub notes: Vec<String>,
}

impl Offer {
    pub fn has_required(&self) -> bool {
        self.gates.iter().any(|gate| gate.hard)
    }
}
