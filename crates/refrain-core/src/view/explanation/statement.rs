//! Words that name the sender of a request, and what the agent or its program said.

use crate::LoopId;
use crate::event::Asker;
use crate::r#loop::LoopState;
use crate::plan::{TaskId, TaskRef};
use crate::text::{printable, squeeze};

/// The source of a stop request; `person` are the words for a person.
pub(crate) fn asked_by(by: Option<Asker>, person: &'static str) -> &'static str {
    match by {
        Some(Asker::Agent) => "by an agent",
        Some(Asker::Unknown) => "by an unknown sender",
        Some(Asker::Person) | None => person,
    }
}

/// How a person paused it: by a request, or with a signal to the runner.
pub(crate) fn by_person(is_requested: bool) -> &'static str {
    if is_requested {
        "by a person"
    } else {
        "by a signal to its runner (Ctrl-C, SIGTERM or a closed terminal)"
    }
}

/// The words, and what the agent's program said last.
pub(super) fn told(words: &str, state: &LoopState) -> String {
    match state.said_of_trouble() {
        Some(said) => format!("{words}: {}", squeeze(&printable(said))),
        None => words.to_owned(),
    }
}

/// What the agent that is blocked says that it needs, else the last sentence of its message.
pub(super) fn needed(state: &LoopState) -> Option<String> {
    let finished = state.last_charged()?.finished.as_ref()?;
    let said = match &finished.needs {
        Some(needs) => squeeze(&printable(needs)),
        None => last_sentence(&squeeze(&printable(&finished.preview))).to_owned(),
    };
    (!said.is_empty()).then_some(said)
}

/// When the gates ran last, if that was before the last iteration.
pub(crate) fn gates_ran(state: &LoopState) -> Option<String> {
    state.gates_asked_before().map(|iteration| match iteration {
        0 => "before the first iteration".to_owned(),
        n => format!("after iteration {n}"),
    })
}

fn last_sentence(line: &str) -> &str {
    let end = line.trim_end_matches(['.', '!', '?', ' ']).len();
    let begins = [". ", "! ", "? "].iter().filter_map(|mark| Some(line[..end].rfind(mark)? + mark.len()));
    &line[begins.max().unwrap_or(0)..]
}

/// The command that tells the agent what to do, and continues. Of a task, the plan tells the next round's agent.
pub(super) fn tell(state: &LoopState) -> String {
    match &state.spec.task {
        Some(TaskRef { plan, id, .. }) => tell_task(plan, id),
        None => format!("refrain answer {} TEXT", state.spec.id),
    }
}

/// The command that tells the next agent of a plan's task what to do, and continues the plan.
pub fn tell_task(plan: &LoopId, task: &TaskId) -> String {
    format!("refrain plan tune {plan} {task} --words TEXT --resume")
}
