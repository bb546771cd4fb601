//! The parts that several pages have. Each is a template, and shown as it is by another one.

use askama::Template;
use refrain_core::view::{Charset, Group, Iteration, Pip, StatusWord, Verification};

use crate::requests::COMMAND;

/// The longest strip, in iterations.
const LONGEST_STRIP: usize = 40;
/// How many letters the gates of a row have, with 4 for the mark and the edges of each.
const ROW_OF_GATES: usize = 24;

/// The status, or the label of the result, with its glyph.
#[derive(Template)]
#[template(source = "<span class=\"status {{ class }}\">{{ text }}</span>", ext = "html")]
pub(super) struct Label {
    pub(super) class: &'static str,
    pub(super) text: &'static str,
}

impl Label {
    pub(super) fn of(status: StatusWord, verified: Option<bool>) -> Self {
        let verification = Verification::of(status, verified);
        let class = match verification {
            Verification::Verified | Verification::Unverified => verification.word(),
            Verification::No | Verification::Pending => status.as_str(),
        };
        Self { class, text: verification.label_or(status, Charset::Unicode) }
    }

    /// The colour of the page's icon.
    pub(super) fn icon(group: Group) -> &'static str {
        match group {
            Group::NeedsYou | Group::Running | Group::Verified => group.as_str(),
            Group::Unverified | Group::Stopped => "idle",
        }
    }
}

/// The iterations as a strip of marks.
#[derive(Template)]
#[template(
    source = "{% if !pips.is_empty() %}<span class=\"pips\" role=\"img\" aria-label=\"{{ says }}\">{% if earlier > 0 %}<small>+{{ earlier }}</small>{% endif %}{% for pip in pips %}<i class=\"pip {{ pip.as_str() }}\"></i>{% endfor %}</span>{% endif %}",
    ext = "html"
)]
pub(super) struct Strip {
    pips: Vec<Pip>,
    /// How many more iterations there are before the first of them.
    earlier: usize,
    says: String,
}

impl Strip {
    pub(super) fn is_shown(&self) -> bool {
        !self.pips.is_empty()
    }

    /// Of a loop that `is_live`, or of one whose unfinished iteration was interrupted.
    pub(super) fn of(iterations: &[Iteration], is_live: bool) -> Self {
        let first = iterations.len().saturating_sub(LONGEST_STRIP);
        let pips: Vec<_> = iterations[first..].iter().map(|it| pip(it, is_live)).collect();
        let count = |wanted: Pip| pips.iter().filter(|pip| **pip == wanted).count();
        let kinds = [Pip::Passed, Pip::Failed, Pip::Advisory, Pip::Ended, Pip::Broken, Pip::Running];
        let counts =
            kinds.into_iter().map(|kind| (count(kind), kind.as_str())).filter(|(count, _)| *count > 0);
        let counts: Vec<_> = counts.map(|(count, word)| format!("{count} {word}")).collect();
        let s = if iterations.len() == 1 { "" } else { "s" };
        let of = if first > 0 { format!("of the last {}: ", pips.len()) } else { String::new() };
        let says = format!("{} iteration{s}: {of}{}", iterations.len(), counts.join(", "));
        Self { says, pips, earlier: first }
    }
}

/// The mark of an iteration.
pub(super) fn pip(it: &Iteration, is_live: bool) -> Pip {
    match Pip::of(it) {
        Pip::Running if !is_live => Pip::Broken,
        pip => pip,
    }
}

/// A gate's last result.
#[derive(Template)]
#[template(
    source = "<span class=\"chip gate {{ class }}\"{% if !title.is_empty() %} title=\"{{ title }}\"{% endif %}>{{ name }}<span class=\"away\">: {{ says }}</span></span>",
    ext = "html"
)]
pub(super) struct GateChip {
    pub(super) name: String,
    pub(super) says: &'static str,
    pub(super) class: &'static str,
    /// The names of several gates that it stands for.
    title: String,
}

impl GateChip {
    pub(super) fn of(name: &str, hard: bool, passed: bool) -> Self {
        let (says, class) = match (passed, hard) {
            (true, _) => ("passed", "passed"),
            (false, true) => ("failed", "failed"),
            (false, false) => ("failed, advisory", "advisory"),
        };
        Self { name: name.to_owned(), says, class, title: String::new() }
    }

    /// One chip for each gate, or, if their names are too long for a row, one for each result.
    pub(super) fn row_of<'a>(gates: impl Iterator<Item = (&'a str, bool, bool)>) -> Vec<Self> {
        let all: Vec<_> = gates.map(|(name, hard, passed)| Self::of(name, hard, passed)).collect();
        if all.iter().map(|chip| chip.name.chars().count() + 4).sum::<usize>() <= ROW_OF_GATES {
            return all;
        }
        let mut merged: Vec<Self> = Vec::new();
        for class in ["failed", "advisory", "passed"] {
            let names: Vec<_> =
                all.iter().filter(|chip| chip.class == class).map(|chip| chip.name.as_str()).collect();
            if let Some(chip) = all.iter().find(|chip| chip.class == class) {
                let (name, title) = match names[..] {
                    [name] => (name.to_owned(), name.to_owned()),
                    _ => (names.len().to_string(), names.join(", ")),
                };
                merged.push(Self { name, title, says: chip.says, class });
            }
        }
        merged
    }
}

/// What a loop needs from you, and the form for it.
#[derive(Template)]
#[template(path = "need.html")]
pub(super) struct Need {
    pub(super) base: String,
    pub(super) id: String,
    /// Where the form leads back to: `/`, or empty for the loop.
    pub(super) back: &'static str,
    pub(super) title: &'static str,
    pub(super) text: String,
    pub(super) form: NeedForm,
    /// The same on the command line.
    pub(super) terminal: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NeedForm {
    /// Approve this tree; empty if it has no name.
    Approve(String),
    /// Whether it has stopped: it can also continue with other limits.
    Answer(bool),
    Continue,
    /// Answer what the tasks of a plan ask.
    Tasks(Vec<TaskNeed>),
}

/// A task of a plan that needs you, with the form that tells its next agent how it continues.
#[derive(Clone, Debug, PartialEq, Eq, Template)]
#[template(path = "task_need.html")]
pub(super) struct TaskNeed {
    pub(super) base: String,
    /// Where the form leads back to, as of [`Need`].
    pub(super) back: &'static str,
    pub(super) task: String,
    pub(super) title: String,
    /// Its question, or why it stopped.
    pub(super) text: String,
    pub(super) is_question: bool,
    /// The plan has stopped: a running one takes no answers.
    pub(super) can_answer: bool,
}

impl TaskNeed {
    pub(super) fn of(
        (base, back): (&str, &'static str),
        (task, title): (&str, &str),
        (question, reason): (Option<&str>, &str),
    ) -> Self {
        Self {
            base: base.to_owned(),
            back,
            task: task.to_owned(),
            title: title.to_owned(),
            text: question.map_or_else(|| sentence(reason), str::to_owned),
            is_question: question.is_some(),
            can_answer: true,
        }
    }
}

/// What is known of a loop that needs you.
pub(super) struct NeedFacts<'a> {
    pub(super) status: StatusWord,
    pub(super) is_plan: bool,
    pub(super) waits_for: Option<&'a str>,
    pub(super) question: Option<&'a str>,
    pub(super) reason: &'a str,
    pub(super) needs: Option<&'a str>,
    pub(super) agent: &'a str,
    /// The tree that waits for approval.
    pub(super) tree: Option<&'a str>,
    /// The tasks of a plan that need you.
    pub(super) tasks: Vec<TaskNeed>,
}

/// The agent as pages name it.
pub(super) fn agent_name(agent: &str) -> &str {
    if agent == COMMAND { "command" } else { agent }
}

/// The text with a capital letter, as a sentence begins.
pub(super) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

impl Need {
    pub(super) fn of(base: String, id: String, back: &'static str, facts: NeedFacts<'_>) -> Self {
        let reason = sentence(facts.reason);
        let (title, text, form) = match facts.waits_for {
            _ if facts.status == StatusWord::Crashed => ("Interrupted", reason, NeedForm::Continue),
            _ if facts.is_plan && facts.tasks.is_empty() => ("Can continue", reason, NeedForm::Continue),
            _ if facts.is_plan => ("Tasks need you", String::new(), NeedForm::Tasks(facts.tasks)),
            Some("approval") => {
                ("Needs your approval", reason, NeedForm::Approve(facts.tree.unwrap_or_default().to_owned()))
            }
            Some("answer") => {
                let text = facts.question.map_or(reason, str::to_owned);
                ("Needs your answer", text, NeedForm::Answer(facts.status.has_stopped()))
            }
            Some("login") => {
                let text = format!("Log in with {} on this machine, then continue.", facts.agent);
                ("Needs a login", text, NeedForm::Continue)
            }
            Some("provider") => ("Waits for the provider", reason, NeedForm::Continue),
            Some("repository") => ("The repository needs you", reason, NeedForm::Continue),
            _ => ("Setup needs you", reason, NeedForm::Continue),
        };
        Self { base, id, back, title, text, form, terminal: facts.needs.unwrap_or_default().to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_asked_with_its_form() {
        let facts = NeedFacts {
            status: StatusWord::Blocked,
            is_plan: false,
            waits_for: Some("answer"),
            question: Some("Which <db>?"),
            reason: "blocked",
            needs: None,
            agent: "claude",
            tree: None,
            tasks: Vec::new(),
        };
        let approval =
            NeedFacts { waits_for: Some("approval"), tree: Some("abc"), tasks: Vec::new(), ..facts };
        let need = Need::of("/p/x/job".to_owned(), "job".to_owned(), "", facts);
        assert_eq!((need.title, need.text.as_str()), ("Needs your answer", "Which <db>?"));
        assert_eq!(need.form, NeedForm::Answer(true));
        let need = Need::of(String::new(), String::new(), "", approval);
        assert_eq!(need.form, NeedForm::Approve("abc".to_owned()));
    }
}
