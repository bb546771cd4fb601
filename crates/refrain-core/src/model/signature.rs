//! Which records of a journal are signed, over what, and what a missing signature means. The shell signs and checks.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::hex::Hex;
use crate::ids::{LoopId, RequestId};

/// An Ed25519 public key.
pub type PublicKey = Hex<64>;

/// The signature of a record, as in the record's line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    pub key: PublicKey,
    pub value: Hex<128>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignedKind {
    /// `loop.started`: it names the key of the home that started the loop.
    Start,
    /// `runner.started`: it names the key of the home that the runner belongs to.
    Runner,
    /// `loop.resumed`, with what a person approves of if it is a yes.
    Resumed { approves: bool },
    /// `loop.ended`.
    End,
    /// `loop.left`.
    Departure,
    /// `loop.moved`: its signer accepted the key of the machine that the loop left, and so vouches for all before it.
    Arrival,
}

impl SignedKind {
    fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Runner => "runner",
            Self::Resumed { .. } => "approval",
            Self::End => "end",
            Self::Departure => "departure",
            Self::Arrival => "arrival",
        }
    }

    /// Whether the loop is believed only with a valid signature at such a record.
    fn is_needed(self) -> bool {
        matches!(self, Self::End | Self::Resumed { approves: true } | Self::Departure | Self::Arrival)
    }
}

/// The signed statement of a record: the loop, the record's number, and the hash that its line would have without the
/// signature, which covers every line before it.
pub fn statement(id: &LoopId, seq: u64, hash: &str) -> Vec<u8> {
    format!("refrain journal record\n{id}\n{seq}\n{hash}\n").into_bytes()
}

/// The signed statement of a request: its target (`loops/ID` or `plans/ID`), its id, and the request itself, as JSON.
pub fn request_statement(of: &str, id: &RequestId, ask: &str) -> Vec<u8> {
    format!("refrain request\n{of}\n{}\n{ask}\n", id.as_str()).into_bytes()
}

/// Whether a signature is valid: by a key of this home, or by one that the user trusts.
pub type Check = Result<(), Flaw>;

/// Why a signature is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flaw {
    Missing,
    /// It is not one of this record.
    Invalid,
    /// It is by a key that the user does not know.
    Unknown(PublicKey),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedRecord {
    pub kind: SignedKind,
    pub seq: u64,
    pub check: Check,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objection {
    kind: SignedKind,
    pub seq: u64,
    flaw: Flaw,
}

impl Objection {
    /// What can be done about it.
    pub fn remedy(&self) -> Remedy {
        match (self.kind, &self.flaw) {
            (_, Flaw::Unknown(_)) => Remedy::TrustKey,
            // Without its start there is no loop.
            (SignedKind::Start, Flaw::Missing | Flaw::Invalid) => Remedy::StartAnew,
            (_, Flaw::Missing | Flaw::Invalid) => Remedy::SetAside,
        }
    }

    /// The key that signed, if the user does not know it.
    pub fn unknown_key(&self) -> Option<&PublicKey> {
        match &self.flaw {
            Flaw::Unknown(key) => Some(key),
            Flaw::Missing | Flaw::Invalid => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// The record is not believed; the next runner sets it aside, with all after it.
    SetAside,
    /// Nothing of the loop is believed.
    StartAnew,
    /// The key becomes one of `[trust] signers`.
    TrustKey,
}

impl fmt::Display for Objection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, seq) = (self.kind.name(), self.seq);
        match &self.flaw {
            Flaw::Missing => write!(f, "its {kind} (record {seq}) has no signature"),
            Flaw::Invalid => write!(f, "the signature of its {kind} (record {seq}) does not fit"),
            Flaw::Unknown(key) => write!(
                f,
                "its {kind} (record {seq}) is signed with key {key}, which is neither yours nor one of [trust] signers"
            ),
        }
    }
}

/// The findings on the signatures of a journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Signatures {
    /// They were not checked: the runner itself knows what it wrote.
    #[default]
    Unchecked,
    /// The loop has not ended, so there is nothing to be signed yet.
    Open,
    /// Its journal has format 1, of version 0.1.0, which signed nothing.
    Before,
    /// Its end, and every approval, is signed.
    Signed,
    /// Its end, or an approval, is not.
    Unsigned(Objection),
}

impl Signatures {
    /// Those of a journal of this format with these records, the first first.
    pub fn of(records: &[SignedRecord], is_ended: bool, format: u32) -> Self {
        let is_signed = |record: &SignedRecord| record.check != Err(Flaw::Missing);
        if !records.first().is_some_and(|first| first.kind == SignedKind::Start && is_signed(first)) {
            return match format {
                1 => Self::Before,
                _ => Self::Unsigned(Objection { kind: SignedKind::Start, seq: 1, flaw: Flaw::Missing }),
            };
        }
        // An end that the loop went on from decides nothing any more.
        let last_end = records.iter().rposition(|record| record.kind == SignedKind::End).filter(|_| is_ended);
        let is_accepted = |record: &SignedRecord| record.kind == SignedKind::Arrival && record.check.is_ok();
        let vouched = records.iter().rposition(is_accepted).unwrap_or(0);
        let counts = |place: usize, record: &SignedRecord| match record.kind {
            SignedKind::Start => record.check == Err(Flaw::Invalid),
            SignedKind::End => last_end == Some(place),
            SignedKind::Runner | SignedKind::Resumed { .. } | SignedKind::Departure | SignedKind::Arrival => {
                record.kind.is_needed()
            }
        };
        let objection = records.iter().enumerate().find_map(|(place, record)| {
            let is_vouched = place < vouched && matches!(record.check, Err(Flaw::Unknown(_)));
            let flaw = record.check.as_ref().err().filter(|_| counts(place, record) && !is_vouched)?.clone();
            Some(Objection { kind: record.kind, seq: record.seq, flaw })
        });
        match (objection, is_ended) {
            (Some(objection), _) => Self::Unsigned(objection),
            (None, true) => Self::Signed,
            (None, false) => Self::Open,
        }
    }

    /// Why neither the user nor a key that the user trusts vouches for the start of a journal of this format: a stranger
    /// may have chosen the commands in it. An accepted arrival vouches for it. A journal of format 1 is believed, as
    /// version 0.1.0 signed nothing.
    pub fn foreign_start(records: &[SignedRecord], format: u32) -> Option<Objection> {
        let start = records.first().filter(|first| first.kind == SignedKind::Start);
        let flaw = match start.map_or(Err(Flaw::Missing), |start| start.check.clone()) {
            Ok(()) => return None,
            Err(Flaw::Missing) if format == 1 => return None,
            Err(flaw) => flaw,
        };
        let is_accepted = |record: &SignedRecord| record.kind == SignedKind::Arrival && record.check.is_ok();
        let objection = Objection { kind: SignedKind::Start, seq: 1, flaw };
        (!records.iter().any(is_accepted)).then_some(objection)
    }

    /// Whether it is signed; none if there is nothing to be signed, or nothing was looked at.
    pub fn is_signed(&self) -> Option<bool> {
        match self {
            Self::Unchecked | Self::Open | Self::Before => None,
            Self::Signed => Some(true),
            Self::Unsigned(_) => Some(false),
        }
    }

    /// Why it is not signed.
    pub fn objection(&self) -> Option<&Objection> {
        match self {
            Self::Unsigned(objection) => Some(objection),
            Self::Unchecked | Self::Open | Self::Before | Self::Signed => None,
        }
    }
}

impl fmt::Display for Signatures {
    /// Nothing if there is nothing to say.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unchecked | Self::Open => Ok(()),
            Self::Before => f.write_str("made before signatures"),
            Self::Signed => f.write_str("signed"),
            Self::Unsigned(objection) => write!(f, "unsigned: {objection}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const START: SignedKind = SignedKind::Start;
    const RUNNER: SignedKind = SignedKind::Runner;
    const YES: SignedKind = SignedKind::Resumed { approves: true };
    const GOES_ON: SignedKind = SignedKind::Resumed { approves: false };
    const END: SignedKind = SignedKind::End;
    const LEFT: SignedKind = SignedKind::Departure;
    const MOVED: SignedKind = SignedKind::Arrival;

    fn unknown() -> Check {
        Err(Flaw::Unknown("ab".repeat(32).parse().unwrap()))
    }

    #[rstest]
    #[case::own(2, &[(START, Ok(()))], "")]
    #[case::of_0_1_0(1, &[(START, Err(Flaw::Missing))], "")]
    #[case::without_a_signature(2, &[(START, Err(Flaw::Missing))], "its start (record 1) has no signature")]
    #[case::without_any(2, &[], "its start (record 1) has no signature")]
    #[case::taken_over(2, &[(START, unknown()), (MOVED, Ok(()))], "")]
    #[case::moved_by_a_stranger(2, &[(START, unknown()), (MOVED, unknown())], "its start (record 1) is signed with key")]
    #[case::of_a_stranger(1, &[(START, unknown())], "its start (record 1) is signed with key")]
    fn a_stranger_starts_no_loop_of_the_user(
        #[case] format: u32,
        #[case] records: &[(SignedKind, Check)],
        #[case] why: &str,
    ) {
        let numbered = (1..).zip(records);
        let records: Vec<_> = numbered
            .map(|(seq, (kind, check))| SignedRecord { kind: *kind, seq, check: check.clone() })
            .collect();
        let found = Signatures::foreign_start(&records, format).map(|it| it.to_string());
        assert!(
            found.clone().unwrap_or_default().starts_with(why) && found.is_some() != why.is_empty(),
            "{found:?}"
        );
    }

    #[rstest]
    #[case::runs(&[(START, Ok(())), (RUNNER, Ok(()))], false, "")]
    #[case::ended(&[(START, Ok(())), (RUNNER, Ok(())), (END, Ok(()))], true, "signed")]
    #[case::of_0_1_0(&[(START, Err(Flaw::Missing)), (END, Err(Flaw::Missing))], true, "made before signatures")]
    #[case::of_0_1_0_goes_on(&[(START, Err(Flaw::Missing)), (END, Ok(()))], true, "made before signatures")]
    #[case::without_a_key(
        &[(START, Err(Flaw::Missing)), (END, Err(Flaw::Missing))], true,
        "unsigned: its start (record 1) has no signature"
    )]
    #[case::forged_end(
        &[(START, Ok(())), (RUNNER, Err(Flaw::Missing)), (END, Err(Flaw::Missing))], true,
        "unsigned: its end (record 3) has no signature"
    )]
    #[case::of_another_record(
        &[(START, Ok(())), (END, Err(Flaw::Invalid))], true,
        "unsigned: the signature of its end (record 2) does not fit"
    )]
    #[case::forged_yes(
        &[(START, Ok(())), (END, Ok(())), (YES, Err(Flaw::Missing))], false,
        "unsigned: its approval (record 3) has no signature"
    )]
    #[case::forged_yes_and_a_signed_end(
        &[(START, Ok(())), (YES, Err(Flaw::Missing)), (END, Ok(()))], true,
        "unsigned: its approval (record 2) has no signature"
    )]
    #[case::resumed_with_more(
        &[(START, Ok(())), (END, Err(Flaw::Missing)), (GOES_ON, Err(Flaw::Missing)), (END, Ok(()))], true,
        "signed"
    )]
    #[case::started_elsewhere(&[(START, unknown()), (RUNNER, Ok(())), (END, Ok(()))], true, "signed")]
    #[case::moved(
        &[(START, unknown()), (YES, unknown()), (END, unknown()), (LEFT, unknown()), (MOVED, Ok(()))], true,
        "signed"
    )]
    #[case::moved_twice(
        &[(START, Ok(())), (END, Ok(())), (LEFT, Ok(())), (MOVED, unknown()), (LEFT, unknown()),
          (MOVED, Ok(())), (END, Ok(()))], true,
        "signed"
    )]
    #[case::forged_before_it_moved(
        &[(START, unknown()), (YES, Err(Flaw::Missing)), (END, unknown()), (LEFT, unknown()), (MOVED, Ok(()))], true,
        "unsigned: its approval (record 2) has no signature"
    )]
    #[case::forged_move(
        &[(START, Ok(())), (END, Ok(())), (LEFT, Err(Flaw::Missing)), (MOVED, Err(Flaw::Missing))], true,
        "unsigned: its departure (record 3) has no signature"
    )]
    #[case::another_start(
        &[(START, Err(Flaw::Invalid)), (END, Ok(()))], true,
        "unsigned: the signature of its start (record 1) does not fit"
    )]
    fn a_missing_signature_is_explained(
        #[case] records: &[(SignedKind, Check)],
        #[case] is_ended: bool,
        #[case] expected: &str,
    ) {
        let numbered = (1..).zip(records);
        let records: Vec<_> = numbered
            .map(|(seq, (kind, check))| SignedRecord { kind: *kind, seq, check: check.clone() })
            .collect();
        let format = if expected.starts_with("made before") { 1 } else { 2 };
        assert_eq!(Signatures::of(&records, is_ended, format).to_string(), expected);
    }

    #[test]
    fn an_end_by_an_unknown_key_is_unsigned_and_not_forged() {
        let signed = |kind, seq, check| SignedRecord { kind, seq, check };
        let found = Signatures::of(&[signed(START, 1, unknown()), signed(END, 2, unknown())], true, 2);
        assert_eq!(found.is_signed(), Some(false));
        let objection = found.objection().unwrap();
        assert!(
            objection.remedy() == Remedy::TrustKey && objection.to_string().contains("[trust] signers"),
            "{objection}"
        );
    }
}
