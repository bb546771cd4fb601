//! The checks of a commit, and their overall result. Which exist is queried elsewhere; here is only the evaluation.

use refrain_core::git::Oid;
use refrain_core::text::{clip, printable};

/// The longest summary of a check, in bytes.
const SUMMARY: usize = 4 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckState {
    Queued,
    Running,
    /// It waits for a user: an approval, or a button.
    Waiting,
    Passed,
    Failed,
    /// It was cancelled, by a user or automatically.
    Cancelled,
    Skipped,
    Neutral,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub name: String,
    pub state: CheckState,
    /// Whether it is required before merging; none if that is unknown.
    pub required: Option<bool>,
    pub url: Option<String>,
    pub summary: String,
    /// The job with the detailed log, if the forge runs it.
    pub(super) job: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChecksSetup {
    Yes(String),
    No,
    /// The state is unknown, with the reason.
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checks {
    pub head: Oid,
    /// The reported checks, each once, in their latest state.
    pub list: Vec<Check>,
    /// The names of the required checks, as far as they are known.
    pub required: Vec<String>,
    /// More checks will follow from those that have begun: the list is incomplete.
    pub unfinished: bool,
    pub configured: ChecksSetup,
}

/// The overall result of the checks of one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All expected checks were reported, and none failed.
    Green,
    Red {
        failed: Vec<Check>,
        /// How many others are running or queued.
        pending: usize,
    },
    Pending {
        done: usize,
        of: usize,
    },
    /// Only a user can start these.
    Waiting {
        on: Vec<Check>,
    },
    /// No check was reported yet, although some are expected: the reason, or why that is unknown.
    NotStarted {
        why: String,
        certain: bool,
    },
    /// There are no checks, and none is expected.
    NoneConfigured,
}

impl Checks {
    /// The overall result. A check that is not required counts too: a user who wants it ignored can merge.
    pub fn verdict(&self) -> Verdict {
        let is = |wanted: &[CheckState]| {
            self.list.iter().filter(|check| wanted.contains(&check.state)).cloned().collect::<Vec<_>>()
        };
        let missing: Vec<&String> =
            self.required.iter().filter(|name| !self.list.iter().any(|check| check.name == **name)).collect();
        let on_their_way = is(&[CheckState::Queued, CheckState::Running]).len() + missing.len();
        let failed = is(&[CheckState::Failed, CheckState::Cancelled]);
        let waiting = is(&[CheckState::Waiting]);
        if !failed.is_empty() {
            return Verdict::Red { failed, pending: on_their_way + waiting.len() };
        }
        if self.list.is_empty() && !self.unfinished {
            return match &self.configured {
                _ if !missing.is_empty() => Verdict::NotStarted { why: required(&missing), certain: true },
                ChecksSetup::Yes(why) => Verdict::NotStarted { why: why.clone(), certain: true },
                ChecksSetup::Unknown(why) => Verdict::NotStarted { why: why.clone(), certain: false },
                ChecksSetup::No => Verdict::NoneConfigured,
            };
        }
        let of = self.list.len() + missing.len();
        match () {
            () if on_their_way > 0 || (self.unfinished && waiting.is_empty()) => {
                Verdict::Pending { done: of - on_their_way - waiting.len(), of }
            }
            () if !waiting.is_empty() => Verdict::Waiting { on: waiting },
            () => Verdict::Green,
        }
    }
}

fn required(missing: &[&String]) -> String {
    let names: Vec<&str> = missing.iter().map(|name| name.as_str()).collect();
    format!("required: {}", printable(&names.join(", ")))
}

pub(super) fn summary(said: &str) -> String {
    clip(&printable(said.trim()), SUMMARY).into_owned()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn check((name, state): (&str, CheckState)) -> Check {
        let (required, url, summary, job) = (None, None, String::new(), None);
        Check { name: name.to_owned(), state, required, url, summary, job }
    }

    fn checks(list: &[(&str, CheckState)], required: &[&str], configured: ChecksSetup) -> Checks {
        Checks {
            head: "a".repeat(40).parse().unwrap(),
            list: list.iter().copied().map(check).collect(),
            required: required.iter().map(|name| (*name).to_owned()).collect(),
            unfinished: false,
            configured,
        }
    }

    fn word(verdict: &Verdict) -> String {
        match verdict {
            Verdict::Green => "green".to_owned(),
            Verdict::Red { failed, pending } => {
                let names: Vec<_> = failed.iter().map(|check| check.name.as_str()).collect();
                format!("red {} +{pending}", names.join(" "))
            }
            Verdict::Pending { done, of } => format!("pending {done}/{of}"),
            Verdict::Waiting { on } => format!("waiting {}", on.len()),
            Verdict::NotStarted { why, certain } => format!("not started: {why} {certain}"),
            Verdict::NoneConfigured => "none".to_owned(),
        }
    }

    use CheckState::{Cancelled, Failed, Neutral, Passed, Queued, Running, Skipped, Waiting};

    #[rstest]
    #[case(&[("a", Passed), ("b", Skipped), ("c", Neutral)], &[], "green")]
    #[case(&[("a", Passed)], &["a"], "green")]
    #[case(&[("a", Passed)], &["a", "b"], "pending 1/2")]
    #[case(&[("a", Passed), ("b", Queued), ("c", Running)], &[], "pending 1/3")]
    #[case(&[("a", Failed), ("b", Running)], &[], "red a +1")]
    #[case(&[("a", Cancelled), ("b", Passed)], &["c"], "red a +1")]
    #[case(&[("a", Passed), ("b", Waiting)], &[], "waiting 1")]
    #[case(&[("a", Running), ("b", Waiting)], &[], "pending 0/2")]
    #[case(&[], &[], "not started: workflows true")]
    #[case(&[], &["lint"], "not started: required: lint true")]
    fn checks_amount_to_a_verdict(
        #[case] list: &[(&str, CheckState)],
        #[case] required: &[&str],
        #[case] expected: &str,
    ) {
        let checks = checks(list, required, ChecksSetup::Yes("workflows".to_owned()));
        assert_eq!(word(&checks.verdict()), expected);
    }

    #[test]
    fn checks_that_have_not_started_are_distinguished_from_no_checks() {
        assert_eq!(checks(&[], &[], ChecksSetup::No).verdict(), Verdict::NoneConfigured);
        let unknown = checks(&[], &[], ChecksSetup::Unknown("not shown".to_owned())).verdict();
        assert_eq!(word(&unknown), "not started: not shown false");
        let begun = Checks { unfinished: true, ..checks(&[], &[], ChecksSetup::No) };
        assert_eq!(word(&begun.verdict()), "pending 0/0");
        let more = Checks { unfinished: true, ..checks(&[("a", Passed)], &[], ChecksSetup::No) };
        assert_eq!(word(&more.verdict()), "pending 1/1");
    }
}
