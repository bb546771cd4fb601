//! A loop's pull request: what was asked for, what was claimed, and what was proven of that. Texts of others are in
//! fences, where they are no Markdown, mention no user and close no issue.

use std::fmt::Write;

use crate::event::ClaimSource;
use crate::ids::LoopId;
use crate::r#loop::LoopState;
use crate::prompt::{fenced, mode};
use crate::spec::Spec;
use crate::text::{clip, cut_middle, printable, squeeze};

/// The longest title, in bytes: forges show that much.
const TITLE: usize = 72;
/// How much of the task is repeated, in bytes.
const TASK: usize = 2 << 10;

/// Its title: the first line of the task; of a mode's loop without a task, the mode.
pub fn title(state: &LoopState) -> String {
    let Spec { id, prompt, mode, .. } = &state.spec;
    let task = match mode {
        Some(_) => mode::task(prompt).unwrap_or_default(),
        None => prompt,
    };
    let first = task.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let first = squeeze(&printable(first));
    match (first.trim_start_matches(['#', '*', '-', '>', ' ']), mode) {
        ("", Some(mode)) => clip(&format!("{}: loop {id}", printable(mode)), TITLE).into_owned(),
        ("", None) => format!("refrain: loop {id}"),
        (first, _) => clip(first, TITLE).into_owned(),
    }
}

/// The new text of a pull request whose text was `said`: `own`, a [`body`], replaces the one before; it comes after the
/// words of the person who opened it, and before what they added.
pub fn retold(said: &str, own: &str, id: &LoopId) -> String {
    // A browser's editor uses other line ends.
    let said = said.replace("\r\n", "\n");
    let said = said.trim();
    let (before, rest) = match (said.split_once(&begin(id)), said.is_empty()) {
        (Some((before, rest)), _) => (before.trim_end(), rest),
        (None, true) => ("", ""),
        (None, false) => (said, ""),
    };
    let behind = rest.split_once(&end(id)).map_or("", |(_, behind)| behind.trim());
    let parts = [before, own.trim_end(), behind];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n\n") + "\n"
}

/// Whether the loop opened a pull request that says this: it begins with the loop's own words then.
pub fn is_own(said: &str, id: &LoopId) -> bool {
    said.trim_start().starts_with(begin(id).trim_end())
}

fn begin(id: &LoopId) -> String {
    format!("<!-- refrain: {id} -->\n")
}

fn end(id: &LoopId) -> String {
    format!("\nRefrain-Loop: {id}")
}

/// Its body. `clean` takes secrets out of the texts of others.
pub fn body(state: &LoopState, clean: impl Fn(&str) -> String) -> String {
    let quoted = |text: &str, most: usize| fenced(&cut_middle(clean(&printable(text)).trim(), most));
    let id = &state.spec.id;
    let mut body = format!("{}Task:\n\n{}\n", begin(id), quoted(&state.spec.prompt, TASK));
    let claim = state.publishing().and_then(|publishing| publishing.claim);
    let iterations = if state.charged == 1 { "iteration" } else { "iterations" };
    let _ = match claim {
        None => writeln!(
            body,
            "\nIt is being worked on: {} {iterations} so far, and no claim yet.",
            state.charged
        ),
        Some(claim) => writeln!(
            body,
            "\n{} after {} {iterations}.",
            match claim {
                ClaimSource::Promise => "The agent claimed it done by its promise",
                ClaimSource::StateFile => "The agent claimed it done in its state file",
                ClaimSource::ExitCode => "The command ended with exit code 0",
                ClaimSource::Gates | ClaimSource::Result => "All gates that decide passed",
                ClaimSource::Count => "The iterations that were asked for are done",
            },
            state.charged
        ),
    };
    let results: Vec<_> =
        state.gate_results().filter_map(|result| Some((result, result.spec(&state.spec)?))).collect();
    if results.is_empty() {
        body.push_str("\n**Unverified**: no gate checks this work.\n");
    } else {
        let tree = state.proven_tree().map(|tree| format!(" on tree `{tree}`")).unwrap_or_default();
        let _ = writeln!(
            body,
            "\nGates, run by Refrain{tree}:\n\n| gate | result | decides | time |\n|---|---|---|---|"
        );
        for (result, gate) in results {
            let word = if result.passed() { "passed" } else { "failed" };
            let decides = if gate.hard { "yes" } else { "no" };
            let _ = writeln!(body, "| {} | {word} | {decides} | {} |", gate.name, result.duration);
        }
    }
    let left_out = state.git.last.as_ref().map_or(0, |last| last.left_out.len() as u64 + last.left_out_more);
    if left_out > 0 {
        let _ = writeln!(body, "\nNot in it: {left_out} files of the loop's that are not committed.");
    }
    let _ = writeln!(body, "{}", end(id));
    body
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, FORMAT, LoopStarted, Record};
    use crate::r#loop::LoopState;
    use crate::r#loop::tests::journal::{spec, time};

    fn state(spec: Spec) -> LoopState {
        let started = LoopStarted { format: FORMAT, refrain: "0".into(), spec };
        let event = Event::LoopStarted(Box::new(started));
        LoopState::begin(&Record { seq: 1, at: time(0), event }).unwrap()
    }

    #[test]
    fn a_title_is_the_first_line_of_the_task() {
        for (prompt, expected) in [
            ("Mend the tests.", "Mend the tests."),
            ("\n\n# Mend  the\ttests\nand more", "Mend the tests"),
            ("\u{1b}[31m- [ ] red", "[ ] red"),
            ("  \n", "refrain: loop mend"),
        ] {
            assert_eq!(title(&state(Spec { prompt: prompt.into(), ..spec() })), expected, "{prompt:?}");
        }
        let of_mode = |task: Option<&str>| {
            let prompt = mode::directed(&mode::prompt(mode::built_in("implement").unwrap(), task), "Slowly.");
            title(&state(Spec { prompt, mode: Some("implement".to_owned()), ..spec() }))
        };
        assert_eq!(of_mode(Some("Add a login page")), "Add a login page");
        assert_eq!(of_mode(None), "implement: loop mend");
        let long = title(&state(Spec { prompt: "mend ".repeat(100), ..spec() }));
        assert!(long.len() <= TITLE + "…".len(), "{long}");
    }

    #[test]
    fn quoted_text_is_no_markdown_and_holds_no_secret() {
        let prompt = "Fixes #1, @everybody\n```\n**bold** hunter2".to_owned();
        let said = body(&state(Spec { prompt, ..spec() }), |text| text.replace("hunter2", "[redacted]"));
        assert!(said.contains("````\nFixes #1, @everybody\n```\n**bold** [redacted]\n````"), "{said}");
        assert!(said.contains("no claim yet") && said.contains("**Unverified**"), "{said}");
        assert!(said.ends_with("\nRefrain-Loop: mend\n"), "{said}");
    }

    #[test]
    fn the_text_of_a_person_around_the_body_is_kept() {
        let state = state(spec());
        let id = &state.spec.id;
        let own = body(&state, str::to_owned);
        assert_eq!(retold("", &own, id), own);
        assert!(
            is_own(&own, id)
                && is_own(&own.replace('\n', "\r\n"), id)
                && !is_own(&retold("Mine.", &own, id), id)
        );
        assert_eq!(retold(&own, &own, id), own);
        let behind = retold("Mine.\r\n\r\nRefrain-Loop: other", &own, id);
        assert_eq!(behind, format!("Mine.\n\nRefrain-Loop: other\n\n{own}"));
        let between = retold(&format!("{behind}\nAnd this."), &own, id);
        assert_eq!(between, format!("{behind}\nAnd this.\n"));
        assert_eq!(retold(&between.replace('\n', "\r\n"), &own, id), between);
    }
}
