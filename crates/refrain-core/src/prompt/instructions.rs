//! How the loop works, in words that are the same in every iteration, so that a provider's prompt cache hits. Every
//! sentence is true for this loop. Beside the user's own strings, which are not cut, it has at most [`LONGEST`] bytes.

use std::fmt::Write;

use super::state_file_path;
use crate::gate::Check;
use crate::protect::Part;
use crate::session::Isolation;
use crate::spec::{ProtectSpec, Spec, Until};
use crate::text::{inline_code, printable, squeeze};

/// The longest text beside the user's own strings (contract.md).
#[cfg(test)]
pub(super) const LONGEST: usize = 700;

pub(super) fn how_it_works(spec: &Spec, in_session: bool) -> String {
    let mut text = format!("## How this loop works\n- {}. {}\n", runs(spec, in_session), earlier_work(spec));
    let isolation = spec.session.as_ref().map(|session| session.isolation);
    if in_session && isolation == Some(Isolation::Subagent) {
        text.push_str("- Have a fresh subagent do each run, with task and notes; only you can claim.\n");
    }
    gates(spec, &mut text);
    protected(&spec.protect, spec.git.workflow.commits(), &mut text);
    claim(spec, &mut text);
    let _ = write!(
        text,
        "- Notes for the next run: {}. To ask, set `status: blocked` and `question: ...` there.",
        inline_code(state_file_path(spec).as_str())
    );
    text
}

/// How often the agent is run, and until when.
fn runs(spec: &Spec, in_session: bool) -> String {
    let again = match in_session {
        true => "You continue after each turn",
        false => "You are started again for each run",
    };
    let mut ends = Vec::new();
    match (spec.until, spec.has_hard_gates()) {
        (Until::Count, _) => return format!("{again}, for a fixed number of runs"),
        (Until::Forever, _) => return format!("{again}, until the loop is stopped"),
        (Until::Complete, false) if spec.promise.is_none() => ends.push("you end without an error"),
        // The changes of a task's agent count as a claim if it ends without a word.
        (Until::Complete, _)
            if spec.promise.is_some() && !spec.hears_results() && !spec.completes_by_gate() =>
        {
            ends.push("you claim to be done");
        }
        // A success command completes the loop without a claim.
        (Until::Complete, _) => {}
    }
    if spec.has_hard_gates() {
        ends.push("the gates pass");
    }
    if spec.approval {
        ends.push("a person approves");
    }
    format!("{again}, until {}", enumerated(&ends))
}

/// Where the work of earlier runs is, and when it is committed.
fn earlier_work(spec: &Spec) -> String {
    let commits = spec.git.workflow.commits();
    let is_there = spec.working_dir.starts_with(&spec.worktree);
    // What it changes in the folder it was started in is in no repository, as far as is known.
    if !spec.is_in_repository() || !is_there && !commits {
        return "Earlier runs' changes are in the files.".to_owned();
    }
    let place = if is_there { String::new() } else { format!(" {}", inline_code(spec.worktree.as_str())) };
    let place = format!("Earlier runs' changes are in the working tree{place}");
    if !commits {
        return format!("{place} (`git status`), not committed for you.");
    }
    let how = if spec.git.workflow.publishes() { "committed and pushed" } else { "committed" };
    match (spec.has_hard_gates() && !spec.git.commits_each(), spec.approval) {
        // Work that a person has to approve is committed after the approval, and so after the gates passed, too.
        (true, _) => format!("{place} (`git status`), {how} for you after the gates pass."),
        (false, true) => {
            format!("{place}, {how} for you after each run, a claim after a person approves.")
        }
        (false, false) => format!("{place}, {how} for you after each run (`git log`)."),
    }
}

/// `a`, `a and b`, `a, b and c`.
fn enumerated(parts: &[&str]) -> String {
    match parts {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The gates that the agent can run itself, then those that are agents.
fn gates(spec: &Spec, text: &mut String) {
    let head = match spec.clean_checkout {
        true => "Run these gates before you finish (Refrain: in a clean checkout)",
        false => "Run these gates yourself before you finish",
    };
    let (required, advisory) = (format!("- {head}:\n"), format!("- {head}; they are advisory:\n"));
    let has_required = list(spec, true, &required, text);
    list(spec, false, if has_required { "- Advisory:\n" } else { &advisory }, text);
    let reviewers = spec.gates.iter().filter_map(|gate| {
        let reviewer = squeeze(&printable(&gate.reviewer()?.program));
        Some(format!("{reviewer} ({}{})", gate.name, if gate.hard { "" } else { ", advisory" }))
    });
    let reviewers: Vec<_> = reviewers.collect();
    if !reviewers.is_empty() {
        let _ = writeln!(text, "- Reviewed after you by {}.", reviewers.join(", "));
    }
}

/// The commands that are required, or are not, below their headline; whether there are any.
fn list(spec: &Spec, hard: bool, headline: &str, text: &mut String) -> bool {
    let before = text.len();
    for gate in spec.gates.iter().filter(|gate| gate.hard == hard) {
        let Check::Command(command) = &gate.check else { continue };
        if text.len() == before {
            text.push_str(headline);
        }
        let _ = writeln!(text, "  - {}:{}", gate.name, command_in_full(command));
    }
    text.len() > before
}

/// A gate's command, whole, after its name; one of several lines in a fence of its own.
fn command_in_full(command: &str) -> String {
    let command = printable(command);
    let command = command.trim();
    if !command.contains('\n') {
        return format!(" {}", inline_code(command));
    }
    let lines: Vec<_> = super::fenced(command).lines().map(|line| format!("\n    {line}")).collect();
    lines.concat()
}

fn protected(protect: &ProtectSpec, commits: bool, text: &mut String) {
    let list = |globs: &[String]| printable(&globs.join(", ")).into_owned();
    let part = |part: &Part| {
        let keys: Vec<_> = part.frozen.iter().chain(&part.may_gain).map(String::as_str).collect();
        format!("{} ({})", part.path, keys.join(", "))
    };
    let parts = protect.parts.iter().map(part);
    let existing: Vec<_> = protect.existing.iter().cloned().chain(parts).collect();
    let rules: Vec<_> = [("changes or new files in", &protect.frozen), ("changes to existing", &existing)]
        .into_iter()
        .filter(|(_, globs)| !globs.is_empty())
        .map(|(what, globs)| format!("{what} {}", list(globs)))
        .collect();
    if !rules.is_empty() {
        let refused = if commits { "Claims and commits" } else { "Claims" };
        let _ = writeln!(text, "- {refused} fail with {}.", rules.join("; "));
    }
}

/// How to claim: the line with the tag is omitted if the user's own prompt has it.
fn claim(spec: &Spec, text: &mut String) {
    let (when, then) = match spec.until {
        Until::Complete => ("everything is done", ""),
        Until::Count => ("everything is done", " It counts in the last run."),
        Until::Forever => ("there is nothing to do now", " The loop then waits."),
    };
    let _ = match &spec.promise {
        Some(promise) if promise.is_tagged_in(&spec.prompt) => Ok(()),
        // Not a line of its own here: an agent that echoes its prompt would claim by it.
        Some(promise) => {
            writeln!(text, "- When {when}, end with {} alone on its line.{then}", promise.tag())
        }
        // The end of such a loop is explained above.
        None if spec.until == Until::Forever => {
            writeln!(text, "- When {when}, set `status: done` in your notes.{then}")
        }
        None => Ok(()),
    };
}
