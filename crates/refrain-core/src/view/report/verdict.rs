use schemars::JsonSchema;
use serde::Serialize;

use crate::ids::LoopId;
use crate::signature::{Objection, PublicKey, Signatures};

/// What `refrain verify` found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Verdict {
    /// The loop.
    pub id: LoopId,
    /// Whether every byte of the journal is as it was written; those of a torn tail are no record, and do not count.
    pub intact: bool,
    /// How many records stand and fit.
    pub records: u64,
    /// What is wrong with the first record that is not; null where all are.
    pub problem: Option<String>,
    /// Bytes of a last line that was cut off while it was written; the next writer puts them aside.
    pub torn_bytes: u64,
    /// Whether its end, and every approval, is signed with a key that the user trusts; null if it has not ended, or was made before
    /// signatures.
    pub signed: Option<bool>,
    /// The same in words; empty if there is nothing to say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub signature: String,
    /// The key that signed it, if the user does not know that key.
    #[serde(skip)]
    pub unknown_signer: Option<PublicKey>,
    /// Whether nothing differs from what the journal says; what cannot be checked does not count.
    pub agrees: bool,
    /// What was compared with the journal, piece by piece; nothing where the journal itself is not intact.
    pub checks: Vec<Check>,
}

impl Verdict {
    /// The verdict on an intact journal, with what was compared with it.
    pub fn new(id: LoopId, records: u64, torn_bytes: u64, checks: Vec<Check>) -> Self {
        let agrees = checks.iter().all(|check| check.outcome != Outcome::Differs);
        Self {
            id,
            intact: true,
            records,
            problem: None,
            torn_bytes,
            signed: None,
            signature: String::new(),
            unknown_signer: None,
            agrees,
            checks,
        }
    }

    /// The same, with the findings on the journal's signatures. A record that no key signed agrees with nothing.
    #[must_use]
    pub fn with_signatures(self, signatures: &Signatures) -> Self {
        let (signed, signature) = (signatures.is_signed(), signatures.to_string());
        let unknown_signer = signatures.objection().and_then(Objection::unknown_key).cloned();
        let is_forged = signed == Some(false) && unknown_signer.is_none();
        Self { signed, signature, unknown_signer, agrees: self.agrees && !is_forged, ..self }
    }

    /// The verdict on a journal with `records` records before the first damaged one.
    pub fn damaged(id: LoopId, records: u64, problem: String) -> Self {
        let found = Self::new(id, records, 0, Vec::new());
        Self { intact: false, problem: Some(problem), agrees: false, ..found }
    }
}

/// One thing that was compared with what the journal says of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Check {
    /// What kind of thing.
    pub subject: Subject,
    /// Which: a path, the name of an object.
    pub which: String,
    /// What came of it.
    pub outcome: Outcome,
    /// What differs, or why it cannot be checked; null where it agrees.
    pub why: Option<String>,
}

/// What can be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// A file that was sealed: a gate's log, a prompt, what an agent printed.
    File,
    /// The commit that the loop began at.
    Base,
    /// The tree that was proven, with all that is in it.
    Tree,
    /// A commit that was made in the loop.
    Commit,
    /// A report that was given.
    Report,
}

/// What came of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It is as the journal says.
    Agrees,
    /// It is not as the journal says, or not there where it has to be.
    Differs,
    /// It is not there any more, and need not be; or that cannot be checked.
    Unchecked,
}

impl Check {
    pub fn agrees(subject: Subject, which: impl ToString) -> Self {
        Self { subject, which: which.to_string(), outcome: Outcome::Agrees, why: None }
    }

    /// It is not as the journal says.
    pub fn differs(subject: Subject, which: impl ToString, why: impl ToString) -> Self {
        Self { subject, which: which.to_string(), outcome: Outcome::Differs, why: Some(why.to_string()) }
    }

    pub fn unchecked(subject: Subject, which: impl ToString, why: impl ToString) -> Self {
        Self { subject, which: which.to_string(), outcome: Outcome::Unchecked, why: Some(why.to_string()) }
    }
}
