//! The findings of `refrain doctor`: the object that `doctor --json` prints and every surface reads. refrain-engine
//! makes the checks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const SCHEMA: u32 = 1;

/// All that was looked at.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Checkup {
    /// The version of this shape.
    pub schema: u32,
    /// The worst grade among the findings.
    pub grade: Grade,
    /// How many findings are problems.
    pub problems: usize,
    /// How many are warnings.
    pub warnings: usize,
    /// What was found, subject by subject.
    pub findings: Vec<Finding>,
}

impl Checkup {
    /// A checkup with these findings, sorted by subject; within one they stay in their order.
    pub fn of(mut findings: Vec<Finding>) -> Self {
        findings.sort_by_key(|finding| finding.subject);
        let count = |grade| findings.iter().filter(|finding| finding.grade == grade).count();
        Self {
            schema: SCHEMA,
            grade: findings.iter().map(|finding| finding.grade).max().unwrap_or(Grade::Ok),
            problems: count(Grade::Problem),
            warnings: count(Grade::Warning),
            findings,
        }
    }
}

/// One thing that was looked at. Its texts may hold what programs and files say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// What kind of thing.
    pub subject: Subject,
    /// Which one: a program, a folder, a loop; null where there is only one.
    pub about: Option<String>,
    /// How it stands.
    pub grade: Grade,
    /// What was found.
    pub found: String,
    /// What to do about it; null where nothing.
    pub advice: Option<String>,
    /// What `--fix` can do, or did; null where it can do nothing.
    pub fix: Option<Fix>,
}

impl Finding {
    pub fn ok(subject: Subject, found: impl Into<String>) -> Self {
        Self { subject, about: None, grade: Grade::Ok, found: found.into(), advice: None, fix: None }
    }

    /// Something that may hinder a loop, and what to do about it.
    pub fn warning(subject: Subject, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { grade: Grade::Warning, advice: Some(advice.into()), ..Self::ok(subject, found) }
    }

    /// Something that will hinder a loop, and what to do about it.
    pub fn problem(subject: Subject, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { grade: Grade::Problem, ..Self::warning(subject, found, advice) }
    }

    #[must_use]
    pub fn about(self, about: impl Into<String>) -> Self {
        Self { about: Some(about.into()), ..self }
    }
}

/// What kind of thing was looked at, in the order in which they are told.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum Subject {
    /// What is configured.
    Configuration,
    /// An agent's program and its version.
    Agent,
    /// Whether an agent is logged in, as far as its program says.
    Login,
    /// What would make an agent ask, or refuse, although no person is there to answer.
    Permissions,
    /// Git and the repository.
    Git,
    /// Room on disk.
    Disk,
    /// What the file systems can do.
    FileSystem,
    /// Who may read what is private.
    Privacy,
    /// Open files and processes that one may have.
    Limits,
    /// Whether agents can run in a sandbox.
    Sandbox,
    /// The machine's clock.
    Clock,
    /// The money that loops share.
    Budget,
    /// The loops of this project.
    Loops,
    /// Requests that no runner heard.
    Requests,
    /// Processes that dead runners left behind.
    Processes,
    /// Worktrees that were made for loops.
    Worktrees,
    /// Going on after a reboot.
    Autostart,
    /// The server that gives loops to workers (`--fleet`).
    Server,
    /// The git remote that has the loops of the fleet.
    State,
    /// A worker of the fleet.
    Worker,
}

impl Subject {
    pub const fn as_str(self) -> &'static str {
        self.into_str()
    }
}

/// How something stands.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum Grade {
    /// As it should be, or of no consequence.
    Ok,
    /// It may hinder a loop.
    Warning,
    /// It will hinder one, or work is at risk.
    Problem,
}

impl Grade {
    pub const fn as_str(self) -> &'static str {
        self.into_str()
    }
}

/// What `refrain doctor --fix` can do about something, or did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fix {
    /// It would mend this.
    Possible,
    /// It did; the finding says what, and is ok.
    Done,
    /// It tried; the finding says why not.
    Failed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_finding_is_the_grade_and_subjects_stand_together() {
        assert_eq!(Checkup::of(vec![]).grade, Grade::Ok);
        let checkup = Checkup::of(vec![
            Finding::warning(Subject::Loops, "crashed", "resume it"),
            Finding::problem(Subject::Disk, "full", "make room"),
            Finding::ok(Subject::Git, "2.47"),
            Finding::ok(Subject::Disk, "room").about("/home"),
        ]);
        assert_eq!((checkup.grade, checkup.problems, checkup.warnings), (Grade::Problem, 1, 1));
        let subjects: Vec<_> = checkup.findings.iter().map(|finding| finding.subject.as_str()).collect();
        assert_eq!(subjects, ["git", "disk", "disk", "loops"]);
        assert_eq!(checkup.findings[1].found, "full", "the order within one stays");
    }

    #[test]
    fn printed_words_equal_the_json_values() {
        for subject in [Subject::Agent, Subject::FileSystem, Subject::Autostart] {
            assert_eq!(serde_json::to_value(subject).unwrap(), subject.as_str());
        }
        for grade in [Grade::Ok, Grade::Warning, Grade::Problem] {
            assert_eq!(serde_json::to_value(grade).unwrap(), grade.as_str());
        }
    }
}
