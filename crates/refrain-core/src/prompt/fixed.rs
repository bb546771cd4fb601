//! How the loop works, in words that are the same in every iteration, so that a provider's prompt cache hits. Every sentence is
//! true for this loop. Beside the user's own strings, which are not cut, it has at most [`LONGEST`] bytes.

use std::fmt::Write;

use super::state_file;
use crate::gate::{Check, GateSpec};
use crate::session::Isolation;
use crate::spec::{ProtectSpec, Spec, Until};
use crate::text::{inline_code, printable, squeeze};

/// How long it is at most beside the user's own strings (contract.md).
#[cfg(test)]
pub(super) const LONGEST: usize = 700;

/// The section.
pub(super) fn how_it_works(spec: &Spec, in_session: bool) -> String {
    let mut text = format!("## How this loop works\n- {}. {}\n", runs(spec, in_session), earlier_work(spec));
    let isolation = spec.session.as_ref().map(|session| session.isolation);
    if in_session && isolation == Some(Isolation::Subagent) {
        text.push_str(
            "- Have a fresh subagent do each run. Give it the task and the notes file. Only you can claim.\n",
        );
    }
    gates(spec, &mut text);
    protected(&spec.protect, &mut text);
    claim(spec, &mut text);
    let _ = write!(
        text,
        "- Notes for the next run: {}. If only a person can help, set `status: blocked` there and say why.",
        inline_code(state_file(spec).as_str())
    );
    text
}

/// How often the agent is run, and until when.
fn runs(spec: &Spec, in_session: bool) -> String {
    let again = match in_session {
        true => "When you end your turn, you are told to continue",
        false => "You are started again for each run",
    };
    let mut ends = Vec::new();
    match (spec.until, spec.has_hard_gates()) {
        (Until::Count, _) => return format!("{again}, for a fixed number of runs"),
        (Until::Forever, _) => return format!("{again}, until a person or a limit stops the loop"),
        (Until::Complete, false) if spec.promise.is_none() => ends.push("you end without an error"),
        // A task's agent that ends without a word claims by what it changed.
        (Until::Complete, _) if spec.promise.is_some() && !spec.hears_results() => {
            ends.push("you claim to be done");
        }
        (Until::Complete, _) => {}
    }
    if spec.has_hard_gates() {
        ends.push("the gates pass");
    }
    if spec.approval {
        ends.push("a person approves");
    }
    format!("{again}, until {}", ends.join(" and "))
}

/// Where the work of earlier runs is, and when it is committed.
fn earlier_work(spec: &Spec) -> String {
    let commits = spec.git.workflow.commits();
    if !spec.is_in_repository() {
        return "You find what earlier runs changed in the files.".to_owned();
    }
    let place = match spec.working_dir.starts_with(&spec.worktree) {
        true => "the working tree".to_owned(),
        // What it changes where it is started is in no repository, as far as is known.
        false if !commits => return "You find what earlier runs changed in the files.".to_owned(),
        false => format!("the working tree {}", inline_code(spec.worktree.as_str())),
    };
    let what = format!("What earlier runs changed is in {place}");
    if !commits {
        return format!("{what}, not committed for you: see `git status` and `git diff`.");
    }
    let how = if spec.git.workflow.publishes() { "committed and pushed" } else { "committed" };
    let when = match (spec.has_hard_gates(), !spec.protect.is_empty(), spec.approval) {
        (false, false, false) => return format!("{what}, {how} for you after each run: see `git log`."),
        (true, false, false) => "when the gates pass",
        (true, true, false) => "when the gates pass and nothing protected changed",
        (true, false, true) => "when the gates pass and, after a claim, a person approves",
        (true, true, true) => {
            "when the gates pass, nothing protected changed and, after a claim, a person approves"
        }
        (false, true, false) => "when nothing protected changed",
        (false, true, true) => "when nothing protected changed and, after a claim, a person approves",
        (false, false, true) => "after each run, and after a claim when a person approves",
    };
    format!("{what}. It is {how} for you {when}; until then see `git status` and `git diff`.")
}

/// The gates that the agent can run itself, then those that are agents.
fn gates(spec: &Spec, text: &mut String) {
    let advisory = |gate: &GateSpec| if gate.hard { "" } else { " (advisory)" };
    let mut commands = 0;
    for gate in &spec.gates {
        let Check::Command(command) = &gate.check else { continue };
        if commands == 0 {
            text.push_str("- Gates. Run them yourself before you finish:\n");
        }
        commands += 1;
        let _ = writeln!(text, "  - {}:{}{}", gate.name, command_in_full(command), advisory(gate));
    }
    if commands > 0 && spec.clean_checkout {
        text.push_str(
            "- Refrain runs them in another folder: a checkout without files that are git-ignored, or were uncommitted before the loop.\n",
        );
    }
    for gate in &spec.gates {
        if let Check::Review(review) = &gate.check {
            let reviewer = squeeze(&printable(&review.agent.program));
            let _ = writeln!(
                text,
                "- After you, {reviewer} reviews the work (gate {}){}.",
                gate.name,
                advisory(gate)
            );
        }
    }
}

/// A gate's command, whole, behind its name; one of several lines in a fence of its own.
fn command_in_full(command: &str) -> String {
    let command = printable(command);
    let command = command.trim();
    if !command.contains('\n') {
        return format!(" {}", inline_code(command));
    }
    let lines: Vec<_> = super::fenced(command).lines().map(|line| format!("\n    {line}")).collect();
    lines.concat()
}

/// What may not change.
fn protected(protect: &ProtectSpec, text: &mut String) {
    let list = |globs: &[String]| printable(&globs.join(", ")).into_owned();
    let mut rules = String::new();
    if !protect.frozen.is_empty() {
        let _ = write!(rules, " Do not change, delete or add: {}.", list(&protect.frozen));
    }
    if !protect.existing.is_empty() {
        let _ = write!(rules, " Do not change or delete, only add: {}.", list(&protect.existing));
    }
    if !protect.parts.is_empty() {
        let part = |part: &crate::protect::Part| {
            let keys: Vec<_> = part.frozen.iter().chain(&part.may_gain).map(String::as_str).collect();
            format!("{} ({})", part.path, keys.join(", "))
        };
        let _ = write!(
            rules,
            " Keep these parts: {}.",
            list(&protect.parts.iter().map(part).collect::<Vec<_>>())
        );
    }
    if !rules.is_empty() {
        let _ = writeln!(text, "- Protected, or no claim counts.{rules}");
    }
}

/// How to claim: the line with the tag is left out if the user's own prompt has it.
fn claim(spec: &Spec, text: &mut String) {
    let (when, then) = match spec.until {
        Until::Complete if spec.has_hard_gates() || spec.approval => {
            ("everything is done", " It is then checked.")
        }
        Until::Complete => ("everything is done", ""),
        Until::Count => ("everything is done", " It counts in the last run."),
        Until::Forever => ("there is nothing to do now", " The loop then waits and asks again."),
    };
    let _ = match &spec.promise {
        Some(promise) if promise.is_tagged_in(&spec.prompt) => Ok(()),
        // Not a line of its own here: an agent that echoes its prompt would claim by it.
        Some(promise) => {
            writeln!(text, "- When {when}, end with {} alone on its line.{then}", promise.tag())
        }
        None => match spec.until {
            Until::Forever => writeln!(text, "- When {when}, set `status: done` in your notes.{then}"),
            Until::Count => Ok(()),
            Until::Complete if spec.has_hard_gates() => {
                writeln!(text, "- You need not claim: if you end without an error, the gates decide.")
            }
            Until::Complete => {
                writeln!(text, "- If you end without an error, that claims that everything is done.{then}")
            }
        },
    };
}
