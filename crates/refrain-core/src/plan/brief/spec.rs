//! The specification of a task, in parts (seed-systems.md section 4.2, "Spec"): the task itself, the plan's section
//! about it, other files, the commands that prove it.

use std::fmt::Write;
use std::slice;

use schemars::JsonSchema;
use serde::Serialize;

use super::document::{Excerpt, PlanDocument};
use super::template::SpecTemplate;
use super::tokens::tokens;
use crate::plan::{Graph, Problem, Task, TaskId};
use crate::prompt::fenced_as;
use crate::text::{printable, squeeze};

/// The size of a specification above which there is a warning, in tokens (seed 001, `max_spec_tokens`).
pub const MAX_TOKENS: u64 = 5_000;

pub(super) const RULE: &str = "\n\n---\n\n";

/// The sources of a specification besides its task.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sources<'a> {
    pub plan: Option<&'a PlanDocument>,
    /// Other files, in their order.
    pub files: &'a [SpecFile],
    /// The shell commands that prove every task which names none of its own; none if the prompt names its gates anyway.
    pub verification: Option<&'a [String]>,
    /// The text around the parts; none puts only rules between them.
    pub template: Option<&'a SpecTemplate>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecFile {
    pub name: String,
    pub text: String,
}

/// The specification of a task. Its sources are untrusted text: it keeps no control character of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Brief {
    pub(super) parts: Vec<Part>,
    text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub kind: PartKind,
    /// Its name for people: that of a file.
    pub name: String,
    pub text: String,
}

/// What a part of a specification is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PartKind {
    /// What the task file says.
    Task,
    /// What the plan says about it.
    Plan,
    /// A file.
    File,
    /// The commands that prove it.
    Verification,
    /// A template's own words.
    Template,
}

impl Brief {
    /// The specification of the task at this place in the graph. It quotes all that the task's parents say, because no
    /// other prompt does; of the tasks before it only the titles.
    pub fn of(graph: &Graph, at: usize, sources: Sources<'_>) -> Self {
        let task = &graph.tasks()[at];
        let part = |kind, name: &str, text: String| Part {
            kind,
            name: name.to_owned(),
            text: printable(&text).trim().to_owned(),
        };
        let mut parts = vec![part(PartKind::Task, "the task itself", about(graph, at))];
        if let Some(text) = sources.plan.and_then(|plan| section(plan, &task.id)) {
            parts.push(part(PartKind::Plan, "the plan's section", text));
        }
        let mut above = graph.parent(at);
        while let Some(parent) = above {
            let words = whole(graph, parent, sources.plan);
            if !words.is_empty() {
                let Task { id, title, .. } = &graph.tasks()[parent];
                let heading = format!("## Part of: {id}: {}", squeeze(&printable(title)));
                let name = format!("task {id}, which it is a part of");
                parts.push(part(PartKind::Task, &name, format!("{heading}\n\n{words}")));
            }
            above = graph.parent(parent);
        }
        for SpecFile { name, text } in sources.files {
            let name = squeeze(&printable(name));
            parts.push(part(PartKind::File, &name, format!("## {name}\n\n{}", text.trim())));
        }
        let commands = sources.verification.map(|all| verification(task, all)).unwrap_or_default();
        if !commands.is_empty() {
            let commands = fenced_as("bash", printable(&commands.join("\n")).trim());
            let text = format!(
                "## Verification\n\nThis has to pass. It is run after you; run it yourself first:\n\n{commands}"
            );
            parts.push(part(PartKind::Verification, "the verification", text));
        }
        let Some(template) = sources.template else {
            let text = joined(parts.iter());
            return Self { parts, text };
        };
        parts.retain(|part| template.names(part.kind));
        let text = template.fill(|kind| joined(parts.iter().filter(|part| part.kind == kind)));
        let own = template.fill(|_| String::new());
        parts.push(part(PartKind::Template, "the template", own));
        let text = printable(&text).trim().to_owned();
        Self { parts, text }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its parts, in order.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The problem if it has more than `budget` tokens: by how much, and which part is the largest. Nothing is cut.
    pub fn over_budget(&self, task: &TaskId, budget: u64) -> Option<Problem> {
        let tokens_of = |part: &&Part| tokens(&part.text);
        let largest = self.parts.iter().max_by_key(tokens_of)?;
        let (task, all, largest) =
            (task.clone(), tokens(&self.text), (largest.name.clone(), tokens_of(&largest)));
        (all > budget).then_some(Problem::OverBudget { task, tokens: all, budget, largest })
    }
}

fn joined<'a>(parts: impl Iterator<Item = &'a Part>) -> String {
    parts.map(|part| part.text.as_str()).collect::<Vec<_>>().join(RULE)
}

/// The shell commands that prove a task: its own, if its file names one, else those of all.
pub fn verification<'a>(task: &'a Task, all: &'a [String]) -> &'a [String] {
    task.verification.as_ref().map_or(all, slice::from_ref)
}

fn about(graph: &Graph, at: usize) -> String {
    let task = &graph.tasks()[at];
    let line = |text: &str| squeeze(&printable(text));
    let named = |at: usize| {
        let Task { id, title, .. } = &graph.tasks()[at];
        format!("{id}: {}", line(title))
    };
    let (id, title) = (&task.id, line(&task.title));
    let mut text = format!("## Task {id}: {title}\n\n- ID: {id}\n- Title: {title}");
    if task.complexity > 0 {
        let _ = write!(text, "\n- Complexity: {}", task.complexity);
    }
    if let Some(parent) = graph.parent(at) {
        let _ = write!(text, "\n- Part of: {}", named(parent));
    }
    if !task.files.is_empty() {
        let _ = write!(text, "\n- Files: {}", line(&task.files.join(", ")));
    }
    let said = |text: &Option<String>| {
        text.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let sections = [
        ("Description", said(&task.description)),
        ("Details", said(&task.details)),
        ("Test strategy", said(&task.test_strategy)),
    ];
    for (heading, said) in sections {
        if let Some(said) = said {
            let _ = write!(text, "\n\n### {heading}\n\n{said}");
        }
    }
    for (number, before) in graph.dependencies(at).into_iter().enumerate() {
        if number == 0 {
            text.push_str("\n\n### Dependencies\n");
        }
        // They landed before this task began.
        let _ = write!(text, "\n- {} (done, and in your checkout)", named(before));
    }
    text
}

/// What a task says of the whole that its parts make: in its file, and in the plan before them.
fn whole(graph: &Graph, at: usize, plan: Option<&PlanDocument>) -> String {
    let task = &graph.tasks()[at];
    let own = [task.description.as_deref(), task.details.as_deref()];
    // Its title is above.
    let behind_heading = |text: &'_ str| text.split_once('\n').map(|(_, rest)| rest.to_owned());
    let planned = plan.and_then(|plan| plan.before_parts(&task.id)).and_then(behind_heading);
    let words = own.into_iter().flatten().chain(planned.as_deref()).map(str::trim);
    words.filter(|words| !words.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// What the plan says about the task, with its source; nothing of an empty plan.
fn section(plan: &PlanDocument, task: &TaskId) -> Option<String> {
    let (note, text, mark) = match plan.about(task) {
        Excerpt::Section(text) => ("", text, ""),
        Excerpt::Whole(text) => ("(no heading of the plan names this task: this is all of it)\n\n", text, ""),
        Excerpt::Beginning(text) => (
            "(no heading of the plan names this task: this is where the plan begins, cut at 2,000 characters)\n\n",
            text,
            "\n\n[… cut here]",
        ),
    };
    (!text.trim().is_empty()).then(|| format!("## The plan's section about it\n\n{note}{text}{mark}"))
}
