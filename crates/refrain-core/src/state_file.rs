//! `state.md`, the contract with the agent: front matter that Refrain reads, a body that is the agent's. Written once by
//! Refrain; afterwards only the status line is ever touched, and every other byte is kept (seed 003, section 6.3).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::LoopId;
use crate::text::{clip, printable, squeeze};

/// How much is told of what an agent needs, in bytes.
const LONGEST_NEED: usize = 300;

/// What the agent says of its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WorkStatus {
    /// It goes on.
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

/// The file as Refrain writes it, once.
#[must_use]
pub fn initial(id: &LoopId, goal: &str) -> String {
    format!(
        "---\nloop_id: {id}\nstatus: in-progress  # done when the work is finished, blocked when a person is needed\n\
         ---\n\n# Goal\n\n{}\n\n# Progress\n\n# Next Action\n\n# Notes\n",
        goal.trim_end()
    )
}

/// What the file says; nothing where it has no front matter of this loop that can be read. Tolerant, because a model
/// wrote it: quotes, comments, other keys and their order are fine.
#[must_use]
pub fn status(text: &str, id: &LoopId) -> Option<WorkStatus> {
    let (matter, _) = front_matter(text)?;
    let matter: FrontMatter = serde_saphyr::from_str(&text[matter]).ok()?;
    matter.loop_id.is_none_or(|named| named == id.as_str()).then_some(matter.status)
}

/// What an agent that is blocked says that it needs: its notes, else its next action, on one line; none where it wrote
/// neither.
#[must_use]
pub fn needs(text: &str) -> Option<String> {
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

/// The file with another status, every other byte as it was; nothing where there is no status line.
#[must_use]
pub fn with_status(text: &str, status: WorkStatus) -> Option<String> {
    let (matter, _) = front_matter(text)?;
    let word = match status {
        WorkStatus::InProgress => "in-progress",
        WorkStatus::Done => "done",
        WorkStatus::Blocked => "blocked",
    };
    let mut at = matter.start;
    for line in text[matter].split_inclusive('\n') {
        if let Some(rest) = line.strip_prefix("status:") {
            let value = rest.trim_end_matches(['\n', '\r']);
            let start = at + "status:".len();
            return Some(format!("{} {word}{}", &text[..start], &text[start + value.len()..]));
        }
        at += line.len();
    }
    None
}

/// What stands behind the front matter; all of it where it has none.
#[must_use]
pub fn body(text: &str) -> &str {
    front_matter(text).map_or(text, |(_, body)| &text[body..])
}

/// Where the front matter stands, and where the body begins.
pub(crate) fn front_matter(text: &str) -> Option<(std::ops::Range<usize>, usize)> {
    let skip = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
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
    #[case::not_at_the_start("\n---\nloop_id: a\nstatus: done\n---\n", None)]
    #[case::unterminated("---\nloop_id: a\nstatus: done\n", None)]
    #[case::bad_status("---\nloop_id: a\nstatus: finished\n---\n", None)]
    #[case::another_loop("---\nloop_id: b\nstatus: done\n---\n", None)]
    #[case::no_status("---\nloop_id: a\n---\nstatus: done", None)]
    #[case::bomb("---\nloop_id: a\nx: &x [*x, *x]\nstatus: done\n---\n", None)]
    fn a_state_file_is_read_tolerantly(#[case] text: &str, #[case] says: Option<WorkStatus>) {
        assert_eq!(status(text, &id()), says);
    }

    #[rstest]
    #[case::notes(
        "# Goal\n\nx\n\n# Next Action\n\nwait\n\n# Notes\n\nThe key for \u{1b}[31mthe API\nis missing.\n",
        Some("The key for the API is missing.")
    )]
    #[case::next("# Next Action\nAsk for access.\n\n# Notes\n\n", Some("Ask for access."))]
    #[case::nothing("# Goal\n\nx\n\n# Notes\n", None)]
    #[case::no_sections("I need a key.", None)]
    fn what_it_needs_is_told_in_its_own_words(#[case] body: &str, #[case] expected: Option<&str>) {
        let text = format!("---\nloop_id: a\nstatus: blocked\n---\n\n{body}");
        assert_eq!(needs(&text).as_deref(), expected);
        assert!(needs(&format!("# Notes\n{}", "x ".repeat(900))).is_some_and(|said| said.len() < 400));
    }

    #[test]
    fn what_refrain_writes_it_can_read() {
        let text = initial(&id(), "Mend the tests.\n---\nstatus: done\n");
        assert_eq!(status(&text, &id()), Some(WorkStatus::InProgress));
        let text = with_status(&text, WorkStatus::Done).unwrap();
        assert_eq!(status(&text, &id()), Some(WorkStatus::Done));
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
