//! `state.md`, the contract with the agent: front matter that Refrain reads, a body that is the agent's. Refrain writes
//! it once; later it changes only the values of `status` and `iteration` and keeps every other byte (seed 003, section
//! 6.3).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::LoopId;
use crate::text::{clip, printable, squeeze};

/// How much of an agent's need is quoted, in bytes.
const LONGEST_NEED: usize = 300;

/// What the agent says of its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WorkStatus {
    /// It continues.
    InProgress,
    /// It is done: a claim.
    #[serde(alias = "Done", alias = "DONE")]
    Done,
    /// A person is needed.
    #[serde(alias = "Blocked", alias = "BLOCKED")]
    Blocked,
}

/// The part of the front matter that Refrain reads; unknown keys are the agent's.
#[derive(Debug, Deserialize)]
struct FrontMatter {
    /// Another loop's file claims nothing; a model that wrote the file anew may have left this out.
    loop_id: Option<String>,
    status: WorkStatus,
}

/// Why a status or a question in the file does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StatusFault {
    /// `status: done` without front matter: that claims nothing.
    NoFrontMatter,
    /// The front matter is another loop's.
    OtherLoop,
    /// The front matter has no status that can be read.
    UnknownStatus,
    /// A `question:` that no `status: blocked` goes with.
    QuestionAlone,
}

impl StatusFault {
    /// What is wrong, and what counts.
    pub fn hint(self) -> &'static str {
        match self {
            Self::NoFrontMatter => {
                "`status: done` counts only in front matter, between two lines `---` at the top of the file"
            }
            Self::OtherLoop => {
                "its front matter has the `loop_id` of another loop, so its status does not count; correct or remove that \
                 line"
            }
            Self::UnknownStatus => {
                "its front matter has no readable status; accepted: `status: in-progress`, `done` and `blocked`"
            }
            Self::QuestionAlone => {
                "a `question:` asks nothing without `status: blocked`; set both at the top of the file, or remove it"
            }
        }
    }
}

/// The key of what an agent that is blocked asks, in words that need not be YAML.
const QUESTION: &str = "question:";
const STATUS: &str = "status:";

/// The file as Refrain writes it, once, before this iteration.
pub fn initial(id: &LoopId, iteration: u32, goal: &str) -> String {
    format!(
        "---\nloop_id: {id}\nstatus: in-progress  # done when the work is finished, blocked when a person is needed\n\
         iteration: {iteration}\n---\n\n{}\n\n# Progress\n\n# Next Action\n\n# Notes\n",
        goal_section(goal)
    )
}

fn goal_section(goal: &str) -> String {
    format!("# Goal\n\n{}", goal.trim_end())
}

/// What the file says; nothing if it has no readable front matter of this loop. Tolerant, because a model wrote it:
/// quotes, comments, other keys and their order are fine, and an agent that is blocked needs no front matter.
pub fn status(text: &str, id: &LoopId) -> Option<WorkStatus> {
    read(text, id).unwrap_or_default()
}

/// Why what the file says does not count; none if it counts, or says nothing.
pub fn fault(text: &str, id: &LoopId) -> Option<StatusFault> {
    match read(text, id) {
        Err(fault) => Some(fault),
        Ok(Some(WorkStatus::Blocked)) => None,
        // One among the keys may have been answered.
        Ok(_) => {
            let notes = keys(text).map_or(text, |keys| &text[keys.end..]);
            question(notes).map(|_| StatusFault::QuestionAlone)
        }
    }
}

fn read(text: &str, id: &LoopId) -> Result<Option<WorkStatus>, StatusFault> {
    let has_matter = front_matter(text).is_some();
    let Some(keys) = keys(text) else { return Ok(None) };
    match serde_saphyr::from_str::<FrontMatter>(&without_question(&text[keys])) {
        Err(_) if has_matter => Err(StatusFault::UnknownStatus),
        Err(_) => Ok(None),
        Ok(FrontMatter { status: WorkStatus::InProgress, .. }) => Ok(Some(WorkStatus::InProgress)),
        Ok(FrontMatter { loop_id: Some(named), .. }) if named != id.as_str() => Err(StatusFault::OtherLoop),
        // It grants one more iteration, so it may be said in fewer words than a claim.
        Ok(FrontMatter { status: WorkStatus::Done, .. }) if !has_matter => Err(StatusFault::NoFrontMatter),
        Ok(FrontMatter { status, .. }) => Ok(Some(status)),
    }
}

/// What an agent that is blocked says that it needs, on one line: its `question:` (also outside the front matter), else its notes, else its next action;
/// none if it wrote none of them.
pub fn needs(text: &str) -> Option<String> {
    let in_matter = keys(text).and_then(|keys| question(&text[keys]));
    if let Some(question) = in_matter.or_else(|| question(body(text))) {
        return Some(clip(&question, LONGEST_NEED).into_owned());
    }
    let body = front_matter(text).map_or(text, |(_, body)| &text[body..]);
    let section = |name: &str| {
        let is_heading = |line: &&str| line.starts_with('#');
        let is_it =
            |line: &&str| is_heading(line) && line.trim_start_matches('#').trim().eq_ignore_ascii_case(name);
        let mut lines = body.lines();
        lines.find(is_it)?;
        let said: Vec<&str> = lines.take_while(|line| !is_heading(line)).collect();
        let said = squeeze(&printable(&said.join(" ")));
        (!said.is_empty()).then(|| clip(&said, LONGEST_NEED).into_owned())
    };
    section("Notes").or_else(|| section("Next Action"))
}

/// The last question: on the line of its key, and on the lines after it that continue it.
fn question(text: &str) -> Option<String> {
    let (at, _) = text.lines().enumerate().filter(|(_, line)| line.starts_with(QUESTION)).last()?;
    let mut lines = text.lines().skip(at);
    let first = lines.next()?.strip_prefix(QUESTION)?.trim();
    // `|` and `>-` begin a text of several lines.
    let is_sign =
        first.starts_with(['|', '>']) && first[1..].bytes().all(|byte| b"+-123456789".contains(&byte));
    let first = if is_sign { "" } else { first };
    let all: Vec<&str> = std::iter::once(first).chain(lines.take_while(|line| continues(line))).collect();
    let words = squeeze(&printable(all.join(" ").trim().trim_matches(['"', '\''])));
    (!words.is_empty()).then_some(words)
}

/// The keys less the question and what continues it.
fn without_question(keys: &str) -> String {
    let mut is_question = false;
    let is_other = |line: &&str| {
        is_question = line.starts_with(QUESTION) || (is_question && continues(line));
        !is_question
    };
    keys.split_inclusive('\n').filter(is_other).collect()
}

/// Whether a line belongs to the key before it: it is indented or empty.
fn continues(line: &str) -> bool {
    line.starts_with([' ', '\t']) || line.trim().is_empty()
}

/// The file with another status, every other byte as it was; nothing if there is no status line.
pub fn with_status(text: &str, status: WorkStatus) -> Option<String> {
    let word = match status {
        WorkStatus::InProgress => "in-progress",
        WorkStatus::Done => "done",
        WorkStatus::Blocked => "blocked",
    };
    with_value(text, STATUS, word)
}

/// The file with the number of the iteration that is about to begin, every other byte as it was; nothing if it has no
/// such line, or says so already.
pub fn with_iteration(text: &str, iteration: u32) -> Option<String> {
    with_value(text, "iteration:", &iteration.to_string()).filter(|changed| changed != text)
}

fn with_value(text: &str, key: &str, value: &str) -> Option<String> {
    let keys = keys(text)?;
    let mut at = keys.start;
    for line in text[keys].split_inclusive('\n') {
        if let Some(rest) = line.strip_prefix(key) {
            let old = rest.trim_end_matches(['\n', '\r']);
            let start = at + key.len();
            return Some(format!("{} {value}{}", &text[..start], &text[start + old.len()..]));
        }
        at += line.len();
    }
    None
}

/// The agent's notes: the body, without a goal that is still the original one, and without empty sections; none if
/// nothing is left.
pub fn notes(text: &str, goal: &str) -> Option<String> {
    let body = body(text).replace("\r\n", "\n");
    let given = goal_section(goal).replace("\r\n", "\n");
    let own = body.trim_start().strip_prefix(&given).filter(|rest| rest.is_empty() || rest.starts_with('\n'));
    let mut kept: Vec<&str> = Vec::new();
    for line in own.unwrap_or(&body).lines() {
        if line.starts_with("# ") {
            drop_empty_section(&mut kept);
        }
        kept.push(line);
    }
    drop_empty_section(&mut kept);
    let notes = printable(&kept.join("\n")).trim().to_owned();
    (!notes.is_empty()).then_some(notes)
}

/// Takes the last heading away if nothing is below it.
fn drop_empty_section(lines: &mut Vec<&str>) {
    let is_said = |line: &&str| !line.trim().is_empty();
    if let Some(last) = lines.iter().rposition(is_said)
        && lines.get(last).is_some_and(|line| line.starts_with("# "))
    {
        lines.truncate(last);
    }
}

/// The text after the front matter; all of it if there is none.
pub fn body(text: &str) -> &str {
    front_matter(text).map_or(text, |(_, body)| &text[body..])
}

/// The place of the keys: the front matter, or in a file without it the lines `key: value` that it begins with, if one
/// is the status.
fn keys(text: &str) -> Option<std::ops::Range<usize>> {
    if let Some((matter, _)) = front_matter(text) {
        return Some(matter);
    }
    let is_key = |line: &&str| {
        let key = line.split_once(':').map_or("", |(key, _)| key);
        !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let start = bom(text);
    let mut is_question = false;
    let belongs = |line: &&str| {
        is_question = line.starts_with(QUESTION) || (is_question && continues(line));
        is_question || is_key(line)
    };
    let lines: Vec<&str> = text[start..].split_inclusive('\n').take_while(belongs).collect();
    let length: usize = lines.iter().map(|line| line.len()).sum();
    lines.iter().any(|line| line.starts_with(STATUS)).then_some(start..start + length)
}

/// The length of the byte order mark.
fn bom(text: &str) -> usize {
    if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 }
}

/// The place of the front matter, and the begin of the body.
pub fn front_matter(text: &str) -> Option<(std::ops::Range<usize>, usize)> {
    let skip = bom(text);
    let mut at = skip;
    let mut lines = text[skip..].split_inclusive('\n');
    let first = lines.next().filter(|line| line.trim_end() == "---")?;
    at += first.len();
    let start = at;
    for line in lines {
        if line.trim_end() == "---" {
            return Some((start..at, at + line.len()));
        }
        at += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn id() -> LoopId {
        "a".parse().unwrap()
    }

    #[rstest]
    #[case::plain("---\nloop_id: a\nstatus: done\n---\nbody", Some(WorkStatus::Done))]
    #[case::single_quotes("---\nloop_id: 'a'\nstatus: 'done'\n---\n", Some(WorkStatus::Done))]
    #[case::double_quotes("---\nloop_id: \"a\"\nstatus: \"done\" # yes\n---\n", Some(WorkStatus::Done))]
    #[case::comment("---\nloop_id: a # mine\nstatus: blocked # help\n---\n", Some(WorkStatus::Blocked))]
    #[case::extra_keys(
        "---\nx: [1, 2]\niteration: 3\nstatus: done\nloop_id: a\n---\n",
        Some(WorkStatus::Done)
    )]
    #[case::crlf("---\r\nloop_id: a\r\nstatus: done\r\n---\r\n", Some(WorkStatus::Done))]
    #[case::no_front_matter("status: done", None)]
    #[case::blocked_without_front_matter(
        "status: blocked # help\nquestion: A: B?\n",
        Some(WorkStatus::Blocked)
    )]
    #[case::blocked_above_the_front_matter(
        "status: blocked\n---\nloop_id: a\nstatus: done\n---\n",
        Some(WorkStatus::Blocked)
    )]
    #[case::blocked_in_prose("status: blocked by CI\n", None)]
    #[case::blocked_below_a_heading("# Notes\nstatus: blocked\n", None)]
    #[case::blocked_in_another_loop("loop_id: b\nstatus: blocked\n", None)]
    #[case::not_at_the_start("\n---\nloop_id: a\nstatus: done\n---\n", None)]
    #[case::unterminated("---\nloop_id: a\nstatus: done\n", None)]
    #[case::bad_status("---\nloop_id: a\nstatus: finished\n---\n", None)]
    #[case::another_loop("---\nloop_id: b\nstatus: done\n---\n", None)]
    #[case::no_status("---\nloop_id: a\n---\nstatus: done", None)]
    #[case::bomb("---\nloop_id: a\nx: &x [*x, *x]\nstatus: done\n---\n", None)]
    fn a_state_file_is_read_tolerantly(#[case] text: &str, #[case] says: Option<WorkStatus>) {
        assert_eq!(status(text, &id()), says);
    }

    #[test]
    fn a_question_need_not_be_yaml_and_comes_first() {
        let text = "---\nloop_id: a\nstatus: blocked\nquestion: Which: A or \"B\"? {\n---\n\n# Notes\n\nx\n";
        assert_eq!(status(text, &id()), Some(WorkStatus::Blocked));
        assert_eq!(needs(text).as_deref(), Some("Which: A or \"B\"? {"));
        assert_eq!(needs(&text.replace("Which: A or \"B\"? {", "\"\"")).as_deref(), Some("x"));
        for question in ["|\n  A\n\n  or B?\n", ">-\n  A\n  or B?\n", "A\n  or B?\n", "\"A\n  or B?\"\n"] {
            for text in [
                format!("---\nloop_id: a\nquestion: {question}status: blocked\n---\n\n# Notes\n\nx\n"),
                format!("status: blocked\nquestion: {question}"),
            ] {
                assert_eq!(status(&text, &id()), Some(WorkStatus::Blocked), "{text}");
                assert_eq!(needs(&text).as_deref(), Some("A or B?"), "{text}");
            }
        }
        let outside = "---\nloop_id: a\nstatus: blocked\n---\n\n# Notes\n\nx\nquestion: A or B?\n";
        assert_eq!(needs(outside).as_deref(), Some("A or B?"));
    }

    #[rstest]
    #[case::it_counts("---\nloop_id: a\nstatus: done\n---\n", None)]
    #[case::blocked("status: blocked\nquestion: A or B?\n", None)]
    #[case::nothing("Half done.\n", None)]
    #[case::a_claim_without_front_matter("status: done\n", Some(StatusFault::NoFrontMatter))]
    #[case::another_loop("---\nloop_id: b\nstatus: blocked\n---\n", Some(StatusFault::OtherLoop))]
    #[case::another_word("---\nstatus: finished\n---\n", Some(StatusFault::UnknownStatus))]
    #[case::a_question_in_notes(
        "---\nloop_id: a\nstatus: in-progress\n---\n\n# Notes\n\nquestion: A or B?\n",
        Some(StatusFault::QuestionAlone)
    )]
    #[case::a_question_alone("question: A or B?\n", Some(StatusFault::QuestionAlone))]
    #[case::a_question_that_was_answered("status: in-progress\nquestion: A or B?\n", None)]
    #[case::a_question_in_words("---\nstatus: in-progress\n---\n\nA question: none.\n", None)]
    fn a_status_that_does_not_count_is_a_fault(#[case] text: &str, #[case] expected: Option<StatusFault>) {
        assert_eq!(fault(text, &id()), expected);
    }

    #[rstest]
    #[case::notes(
        "# Goal\n\nx\n\n# Next Action\n\nwait\n\n# Notes\n\nThe key for \u{1b}[31mthe API\nis missing.\n",
        Some("The key for the API is missing.")
    )]
    #[case::next("# Next Action\nAsk for access.\n\n# Notes\n\n", Some("Ask for access."))]
    #[case::nothing("# Goal\n\nx\n\n# Notes\n", None)]
    #[case::no_sections("I need a key.", None)]
    fn the_need_of_a_blocked_agent_is_quoted_in_its_words(
        #[case] body: &str,
        #[case] expected: Option<&str>,
    ) {
        let text = format!("---\nloop_id: a\nstatus: blocked\n---\n\n{body}");
        assert_eq!(needs(&text).as_deref(), expected);
        assert!(needs(&format!("# Notes\n{}", "x ".repeat(900))).is_some_and(|said| said.len() < 400));
    }

    #[test]
    fn a_state_file_written_by_refrain_can_be_read() {
        let text = initial(&id(), 3, "Mend the tests.\n---\nstatus: done\n");
        assert_eq!(status(&text, &id()), Some(WorkStatus::InProgress));
        let text = with_status(&text, WorkStatus::Done).unwrap();
        assert_eq!(status(&text, &id()), Some(WorkStatus::Done));
    }

    #[rstest]
    #[case::another(
        "---\nloop_id: a\niteration: 9 # mine\n---\n",
        Some("---\nloop_id: a\niteration: 10\n---\n")
    )]
    #[case::carriage_returns(
        "---\r\niteration:9\r\n---\r\nb\r\n",
        Some("---\r\niteration: 10\r\n---\r\nb\r\n")
    )]
    #[case::words("---\niteration: none\n---\n", Some("---\niteration: 10\n---\n"))]
    #[case::the_same("---\niteration: 10\n---\n", None)]
    #[case::no_such_line("---\nloop_id: a\n---\niteration: 9\n", None)]
    #[case::keys_alone("status: blocked\niteration: 9\n", Some("status: blocked\niteration: 10\n"))]
    #[case::no_front_matter("iteration: 9\n", None)]
    fn the_iteration_is_kept_true(#[case] text: &str, #[case] changed: Option<&str>) {
        assert_eq!(with_iteration(text, 10).as_deref(), changed);
    }

    #[rstest]
    #[case::as_it_was_written("", "", None)]
    #[case::a_note("# Notes\n", "# Notes\n\n- Mind the cat.\n", Some("# Notes\n\n- Mind the cat."))]
    #[case::progress("# Progress\n", "# Progress\nHalf.\n", Some("# Progress\nHalf."))]
    #[case::another_goal("Mend the tests.", "Mend the docs.", Some("# Goal\n\nMend the docs."))]
    #[case::more_goal("Mend the tests.", "Mend the tests. All.", Some("# Goal\n\nMend the tests. All."))]
    #[case::sections_below("# Notes\n", "# Notes\n## Empty\nx\n# More\n", Some("# Notes\n## Empty\nx"))]
    #[case::escapes("# Notes\n", "# Notes\n\u{1b}[31mred\n", Some("# Notes\nred"))]
    fn the_notes_are_the_text_that_the_agent_added(
        #[case] of: &str,
        #[case] by: &str,
        #[case] noted: Option<&str>,
    ) {
        let text = initial(&id(), 1, "Mend the tests.").replace(of, by);
        assert_eq!(notes(&text, "Mend the tests.\n").as_deref(), noted);
        let windows = text.replace('\n', "\r\n");
        assert_eq!(notes(&windows, "Mend the tests.\r\n").as_deref(), noted);
    }

    #[test]
    fn a_file_without_front_matter_is_all_notes() {
        assert_eq!(notes("Half done.\n", "x").as_deref(), Some("Half done."));
        assert_eq!(notes(" \n", "x"), None);
    }

    #[test]
    fn only_the_status_line_changes() {
        let text =
            "---\r\nmood: 'good'\r\nstatus: \"done\" # at last\r\nloop_id: a\r\n---\r\nstatus: done\r\n";
        let back = with_status(text, WorkStatus::InProgress).unwrap();
        assert_eq!(
            back,
            "---\r\nmood: 'good'\r\nstatus: in-progress\r\nloop_id: a\r\n---\r\nstatus: done\r\n"
        );
        assert_eq!(with_status("no front matter", WorkStatus::Done), None);
    }
}
