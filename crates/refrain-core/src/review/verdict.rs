//! The verdict in a reviewer's final message. Fail-safe: only an unambiguous pass is a pass.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{FAIL, PASS};
use crate::gate::Verdict;
use crate::promise::plain_lines;
use crate::prompt::answer_schema;
use crate::text::{cut_middle, printable};

/// How much of a reviewer's findings is kept, in bytes: they go to the agent and into the journal.
const LONGEST_FINDINGS: usize = 4096;

/// Your verdict on the work.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReviewReply {
    /// "pass" only if every requirement of the specification passes.
    verdict: Word,
    /// One for each requirement.
    findings: Vec<Finding>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Finding {
    /// The requirement, in short.
    requirement: String,
    verdict: Word,
    /// The file and line that show it, or what is missing.
    evidence: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Word {
    Pass,
    Fail,
}

/// The JSON Schema of a verdict, for agents that can be held to one.
pub fn schema() -> serde_json::Value {
    answer_schema::<ReviewReply>()
}

/// The verdict in a reviewer's final message: the object that [`schema`] describes, or [`PASS`] alone on a line. A
/// message that both passes and fails, fails; words in code, in a quotation or in a comment do not count.
pub fn judge(message: Option<&str>) -> Verdict {
    let message = printable(message.unwrap_or_default());
    let text = message.trim_start_matches('\u{feff}').trim();
    if text.is_empty() {
        return missing("it said nothing");
    }
    if !text.starts_with('{') {
        return match VerdictWords::of(text) {
            VerdictWords { fails: true, .. } => Verdict::Fail { findings: kept(text) },
            VerdictWords { passes: true, fails: false } => Verdict::Pass,
            VerdictWords { passes: false, fails: false } => {
                missing("its final message holds no verdict, such as SPEC_PASS alone on a line")
            }
        };
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<ReviewReply>();
    let answer = match values.next() {
        Some(Ok(answer)) => answer,
        Some(Err(error)) => return missing(&format!("its verdict cannot be read: {error}")),
        None => return missing("its verdict cannot be read"),
    };
    let rest = text.get(values.byte_offset()..).unwrap_or_default().trim();
    let said = VerdictWords::of(rest);
    let failing = answer.findings.iter().any(|finding| finding.verdict == Word::Fail);
    match answer.verdict {
        Word::Fail => Verdict::Fail { findings: kept(&listed(&answer)) },
        Word::Pass if failing => Verdict::Fail { findings: kept(&listed(&answer)) },
        Word::Pass if said.fails => Verdict::Fail { findings: kept(rest) },
        Word::Pass if said.passes || rest.is_empty() => Verdict::Pass,
        Word::Pass => missing("other words follow its verdict"),
    }
}

fn missing(why: &str) -> Verdict {
    Verdict::Missing { why: why.to_owned() }
}

fn kept(findings: &str) -> String {
    cut_middle(findings.trim(), LONGEST_FINDINGS).into_owned()
}

/// What failed, a line each; all findings if nothing is said to have failed.
fn listed(answer: &ReviewReply) -> String {
    let failing = answer.findings.iter().filter(|finding| finding.verdict == Word::Fail);
    let mut text = String::new();
    for Finding { requirement, evidence, .. } in failing {
        let _ = writeln!(text, "- {}: {}", requirement.trim(), evidence.trim());
    }
    match text.is_empty() {
        true => "it names no requirement that fails".to_owned(),
        false => text,
    }
}

struct VerdictWords {
    passes: bool,
    fails: bool,
}

impl VerdictWords {
    fn of(text: &str) -> Self {
        let lines = plain_lines(text);
        Self { passes: lines.iter().any(|line| is_pass(line)), fails: lines.iter().any(|line| is_fail(line)) }
    }
}

/// The word alone, at the very beginning of its line, except for emphasis and a full stop. List marks and indentation
/// are not skipped, because a line of a diff begins like that.
fn is_pass(line: &str) -> bool {
    let bare = line.trim_end().trim_matches(['*', '_']).trim_end_matches('.').trim_end_matches(['*', '_']);
    bare == PASS
}

fn is_fail(line: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word.trim_matches('_') == FAIL)
}
