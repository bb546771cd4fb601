//! The header of a loop: what runs where, until when, and what proves its work.

use owo_colors::OwoColorize;
use refrain_core::spec::{Limits, Permissions, Spec, Until};
use refrain_core::view::{Tone, sandbox};

use super::words;
use crate::render::phrase::{self, Row};
use crate::render::{commits, gates};

pub(super) fn header(spec: &Spec, limits: &Limits, width: Option<usize>) -> String {
    let command = words(std::iter::once(&spec.agent.program).chain(&spec.agent.args));
    let claim = || match &spec.promise {
        Some(promise) if spec.completes_by_gate() => {
            format!("it says {} or its success command passes", promise.tag())
        }
        Some(promise) => format!("it says {}", promise.tag()),
        None if spec.has_hard_gates() => "its gates pass".to_owned(),
        None => "it ends with exit code 0".to_owned(),
    };
    let cap = limits.max_iterations.map(phrase::iterations);
    let at_most = cap.as_ref().map(|cap| format!(", at most {cap}")).unwrap_or_default();
    let mut until = match (spec.until, cap) {
        (Until::Count, Some(count)) => format!("it has run for {count}, whatever it says"),
        (Until::Forever, _) => {
            format!("you stop it; a claim means that there is nothing to do now{at_most}")
        }
        (Until::Complete | Until::Count, _) => claim() + &at_most,
    };
    let durations = [
        (limits.max_duration, "in all"),
        (limits.timeout, "an attempt"),
        (limits.timeout.and(limits.timeout_grace), "more for it to end"),
        (limits.idle_timeout, "of silence"),
        (limits.pause, "between iterations"),
        (limits.retry_for, "of waiting for its provider"),
    ];
    for (limit, what) in durations {
        if let Some(limit) = limit {
            until.push_str(&format!(", {limit} {what}"));
        }
    }
    if let Some(cap) = limits.max_cost {
        until.push_str(&format!(", {cap} in all"));
    }
    if let Some(cap) = limits.max_tokens {
        until.push_str(&format!(", {cap} tokens in all"));
    }
    let capped = limits.max_cost.is_some() || limits.max_tokens.is_some();
    if capped && spec.agent.kind.tells_usage_at_end() {
        until.push_str(" (known only when an iteration is over: one can overshoot)");
    }
    let mut rows = vec![Row::exact("runs", format!("{command} ({})", spec.agent.kind))];
    if spec.agent.kind.streams() {
        let mut model = spec.agent.model.clone().unwrap_or_else(|| "the agent's own choice".to_owned());
        if let Some(price) = spec.agent.price.filter(|_| !spec.agent.kind.tells_cost()) {
            let (input, output) = (price.input, price.output);
            model.push_str(&format!(", reckoned at {input} in and {output} out for a million tokens"));
        }
        rows.extend([Row::prose("model", model), Row::prose("may", may(spec).to_owned())]);
    }
    rows.extend([
        Row::exact("in", spec.working_dir.to_string()),
        Row::prose("until", until),
        Row::prose("proof", gates::intent(spec)),
        Row::prose("lacks", gates::untrusted(&spec.untrusted)).with_tone(Tone::Attention),
        Row::prose("keeps", gates::protected(spec)),
    ]);
    rows.push(Row::prose(
        "git",
        match commits::intent(spec) {
            Some(words) => words,
            None if spec.is_in_repository() => String::new(),
            None => "no repository here: all files of the folder are read after each iteration; git init changes that"
                .to_owned(),
        },
    ));
    rows.push(Row::prose("sandbox", sandbox(spec)));
    let column = if spec.sandbox.is_some() { "sandbox".len() } else { 6 };
    let rows = phrase::rows(&rows, "  ", column, width);
    format!("{} {}\n{rows}", "loop".bold(), spec.id.bold())
}

fn may(spec: &Spec) -> &'static str {
    match spec.agent.permissions {
        Permissions::Auto => "edit and run commands, confined as far as the agent confines itself (auto)",
        Permissions::Full => "do everything: its own questions are bypassed (full)",
        Permissions::Agent => "do what it is configured to (agent)",
        Permissions::ReadOnly => "read, and nothing else (read-only)",
    }
}
