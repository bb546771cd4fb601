use jiff::Timestamp;
use refrain_core::event::ClaimSource;
use refrain_core::r#loop::Outcome;
use refrain_core::spec::Millis;
use refrain_core::text::thousands;
use refrain_core::view::report::{AgentRow, BaseReport, Change, GateProof, Report};
use refrain_core::view::{self, ApprovalWord, Iteration, StatusWord, Usage, Verification, with_yours};

use super::parts::{Cell, Section, Tone, shown};
use crate::render::event_text::words;
use crate::render::phrase::{self, counted};

#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) title: String,
    pub(crate) verdict: Cell,
    pub(crate) reason: String,
    pub(crate) sections: Vec<Section>,
}

/// The document of a report; `folder` is the name to type if the id reaches another loop, `sandbox` describes the one of its
/// agent and gates, `clock` formats times.
pub(crate) fn document(
    report: &Report,
    folder: Option<&str>,
    sandbox: &str,
    clock: &dyn Fn(Timestamp) -> String,
) -> Document {
    let sections = [
        summary(report, folder, sandbox, clock),
        Section::new("What was asked").quote("The prompt", &report.asked.prompt, false),
        protected(report),
        claim(report, clock),
        proof(report, clock),
        refused(report, clock),
        critiques(report),
        iterations(report),
        files(report),
        commits(report),
        spent(report),
        evidence(report, folder),
    ];
    Document {
        title: format!("Report on loop {}", report.id),
        verdict: verdict(report),
        reason: shown(&report.reason),
        sections: sections.into_iter().filter(|section| !section.blocks.is_empty()).collect(),
    }
}

fn verdict(report: &Report) -> Cell {
    let signed = if report.signed == Some(false) { ", unsigned" } else { "" };
    verdict_on(report.status, report.verified, signed)
}

/// The status, and how the result is labelled.
pub(super) fn verdict_on(status: StatusWord, verified: Option<bool>, more: &str) -> Cell {
    let verification = Verification::of(status, verified);
    let (tone, label) = match verification {
        Verification::Verified => (Tone::Good, phrase::label(verification)),
        Verification::Unverified => (Tone::Caution, phrase::label(verification)),
        Verification::No => (Tone::Bad, "not verified"),
        Verification::Pending => (Tone::Plain, "not verified yet"),
    };
    Cell::new(tone, format!("{}, {label}{more}", status.as_str()))
}

fn summary(
    report: &Report,
    folder: Option<&str>,
    sandbox: &str,
    clock: &dyn Fn(Timestamp) -> String,
) -> Section {
    let asked = &report.asked;
    let branch = asked.branch.as_ref().map_or_else(String::new, |branch| format!(", branch {branch}"));
    let refrain = match &report.refrain {
        same if same.started == same.reported => same.started.clone(),
        other => format!("{}; reported by {}", other.started, other.reported),
    };
    // They are numbered without gaps, after those that another system counted.
    let charged = report.iterations.iter().filter(|it| it.charged).map(|it| it.n).max().unwrap_or_default();
    let attempts = u32::try_from(report.iterations.len()).unwrap_or(u32::MAX);
    let iterations = format!(
        "{} charged, {}",
        phrase::progress(charged, asked.limits.max_iterations),
        counted(attempts, "attempt", "attempts")
    );
    let mut facts = vec![
        ("project", Cell::plain(format!("{}{branch}", asked.project))),
        ("base", Cell::plain(report.base.as_ref().map(base).unwrap_or_default())),
    ];
    facts.extend(report.agents.iter().map(|agent| ("agent", Cell::plain(who(agent)))));
    facts.extend([
        ("sandbox", Cell::plain(sandbox)),
        ("refrain", Cell::plain(refrain)),
        (
            "until",
            Cell::plain(asked.promise.as_ref().map(|text| format!("it says {text}")).unwrap_or_default()),
        ),
        ("iterations", Cell::plain(iterations)),
        ("used", Cell::plain(phrase::used(&report.spent.total))),
        ("started", Cell::plain(clock(report.started_at))),
        ("ended", Cell::plain(report.ended_at.map(clock).unwrap_or_default())),
        ("took", Cell::plain(report.active_ms.to_string())),
        ("kept", Cell::plain(kept(report))),
        ("next", Cell::code(report.needs.as_deref().filter(|_| folder.is_none()).unwrap_or_default())),
    ]);
    Section::new("Summary").facts(facts)
}

fn base(base: &BaseReport) -> String {
    let commit = base.commit.as_ref().map_or_else(|| "no commit yet".to_owned(), |it| format!("commit {it}"));
    let tree = base.tree.as_ref().map_or_else(String::new, |tree| format!(", tree {}", tree.short()));
    let dirty = match base.dirty.len() as u64 + base.dirty_more {
        0 => String::new(),
        1 => "; 1 file was changed before, and is no part of what was proven".to_owned(),
        many => format!("; {many} files were changed before, and are no part of what was proven"),
    };
    format!("{commit}{tree}{dirty}")
}

fn who(agent: &AgentRow) -> String {
    let version = agent.version.as_ref().map_or_else(String::new, |version| format!(" {version}"));
    let model = agent.model.as_ref().map_or_else(String::new, |model| format!(", model {model}"));
    let attempts = counted(agent.attempts, "attempt", "attempts");
    format!("{}{version}{model}: {} ({attempts})", agent.kind, words(agent.command.iter()))
}

/// The place of the work of a loop that ended unverified.
fn kept(report: &Report) -> String {
    let Some(saved) = &report.saved else { return String::new() };
    match (&saved.branch, &saved.commit, &saved.why_not) {
        (Some(branch), Some(commit), _) => {
            format!("on branch {branch}, commit {commit}{}", with_yours(&saved.mixed))
        }
        (_, _, Some(why)) => format!("on no branch: {why}"),
        (_, _, None) => String::new(),
    }
}

fn protected(report: &Report) -> Section {
    let section = Section::new("What was protected");
    let Some(protected) = &report.protected else { return section };
    let parts: Vec<_> = protected
        .parts
        .iter()
        .map(|part| {
            let keys = part.frozen.iter().chain(&part.may_gain).cloned().collect::<Vec<_>>();
            format!("{} of {}", keys.join(", "), part.path)
        })
        .collect();
    let tree = protected.tree.as_ref().map(ToString::to_string).unwrap_or_default();
    let section = section.facts(vec![
        ("frozen", Cell::code(protected.frozen.join("  "))),
        ("may only gain", Cell::code(protected.existing.join("  "))),
        ("parts", Cell::code(parts.join("; "))),
        ("as in tree", Cell::code(tree)),
    ]);
    let rows = protected.programs.iter().map(|program| {
        vec![
            Cell::code(&program.name),
            Cell::code(program.path.as_deref().unwrap_or("not found")),
            Cell::code(program.blake3.as_deref().unwrap_or_default()),
        ]
    });
    section.table("The programs of the gates, as they were", &["program", "found as", "blake3"], rows)
}

fn claim(report: &Report, clock: &dyn Fn(Timestamp) -> String) -> Section {
    let section = Section::new("What was claimed");
    let Some(claim) = &report.claim else { return section };
    section.facts(vec![
        ("by", Cell::plain(source(claim.source))),
        ("in", Cell::plain(format!("iteration {}", claim.iteration))),
        ("at", Cell::plain(clock(claim.at))),
        ("it said", Cell::plain(&claim.said)),
    ])
}

fn source(source: ClaimSource) -> &'static str {
    match source {
        ClaimSource::Promise => "the agent's promise",
        ClaimSource::StateFile => "status: done in state.md",
        ClaimSource::ExitCode => "the command's exit code 0",
        ClaimSource::Gates | ClaimSource::Result => "the gates alone",
        ClaimSource::Count => "the number of iterations that was asked for",
    }
}

fn proof(report: &Report, clock: &dyn Fn(Timestamp) -> String) -> Section {
    let title = match report.verified {
        Some(true) => "What proved it",
        Some(false) | None => "What the gates said",
    };
    let section = Section::new(title);
    let Some(proof) = &report.proof else {
        return section.words(match (report.verified, &report.claim, report.status.has_stopped()) {
            (Some(_), _, false) => "No gate was asked yet.",
            (Some(_), _, true) => "No gate was asked before it stopped.",
            (None, Some(_), _) => "No gate was asked. Nothing but the claim says that the work is done.",
            (None, None, _) => "No gate was asked, and nothing says that the work is done.",
        });
    };
    let tree = proof.tree.as_ref().map(ToString::to_string).unwrap_or_default();
    let about = match proof.iteration {
        0 => "what was there before the first iteration".to_owned(),
        n => format!("what iteration {n} left"),
    };
    let mut section = section.facts(vec![("about", Cell::plain(about)), ("tree", Cell::code(tree))]);
    if proof.clean_checkout {
        section = section.words("The gates were asked about a checkout of this tree in a place of its own.");
    }
    if proof.partial {
        section = section.words("The loop changed something that this tree does not show: what was dirty before it, or may not be committed.");
    }
    if proof.restless {
        section = section.words("Gates or hooks changed each time what they were asked about.");
    }
    if let Some(approval) = &proof.approval {
        section = section.words(&match (approval.state, approval.at) {
            (ApprovalWord::Given, Some(at)) => format!("A person approved this tree at {}.", clock(at)),
            (ApprovalWord::Refused, Some(at)) => {
                format!("A person was asked, and did not approve it: {}.", clock(at))
            }
            (ApprovalWord::Awaited, _) | (_, None) => "A person is asked to approve it.".to_owned(),
        });
    }
    let touched = proof.touched.iter().map(|touched| vec![Cell::new(Tone::Bad, touched)]);
    let section =
        section.table("What of the protected was touched", &["touched although protected"], touched);
    let gates = ["gate", "result", "exit", "took", "iteration", "before the loop", "command"];
    let section = section.table("The last result of each gate", &gates, proof.gates.iter().map(gate));
    proof.gates.iter().fold(section, |section, proof| match &proof.log.end {
        Some(end) => section.quote(format!("{}: the end of {}", proof.gate.name, proof.log.path), end, true),
        None => section,
    })
}

fn gate(proof: &GateProof) -> Vec<Cell> {
    let gate = &proof.gate;
    let kind = if gate.hard { "" } else { " (advisory)" };
    let result = match &gate.why {
        None if gate.flaky => "passed, flaky: it had failed on the same files".to_owned(),
        None => match gate.own_tests {
            Some(true) => "passed: tests that the loop itself made".to_owned(),
            Some(false) => "passed: there are no tests".to_owned(),
            None => "passed".to_owned(),
        },
        Some(why) => format!("failed: {why}"),
    };
    let before = match gate.failed_before {
        Some(true) => "failed",
        Some(false) => "passed",
        None => "not asked",
    };
    let iteration = if proof.iteration == 0 { "before".to_owned() } else { proof.iteration.to_string() };
    vec![
        Cell::code(format!("{}{kind}", gate.name)),
        Cell::verdict(gate.passed, result),
        Cell::number(gate.exit_code.map_or_else(|| "none".to_owned(), |code| code.to_string())),
        Cell::number(Millis(gate.duration_ms)),
        Cell::number(iteration),
        Cell::plain(before),
        Cell::code(&gate.command),
    ]
}

fn refused(report: &Report, clock: &dyn Fn(Timestamp) -> String) -> Section {
    let rows = report.refused.iter().map(|refused| {
        vec![
            Cell::number(refused.iteration),
            Cell::plain(source(refused.source)),
            Cell::plain(clock(refused.at)),
            Cell::new(Tone::Bad, refused.why.join("; ")),
        ]
    });
    let head = ["iteration", "claimed by", "at", "refused, as"];
    Section::new("Claims that were refused").table("Each with what spoke against it", &head, rows)
}

fn critiques(report: &Report) -> Section {
    let rows = report.critiques.iter().map(|critique| {
        let said = match (&critique.feedback, &critique.error) {
            (Some(feedback), _) => Cell::plain(feedback),
            (None, Some(error)) => Cell::new(Tone::Bad, format!("failed: {error}")),
            (None, None) => Cell::plain("nothing"),
        };
        vec![Cell::number(critique.iteration), said]
    });
    Section::new("What critics said").table("Behind which iteration", &["iteration", "said"], rows)
}

fn iterations(report: &Report) -> Section {
    let head = ["iteration", "outcome", "exit", "took", "gates", "used", "it said"];
    let at_work = if report.status == StatusWord::Crashed { "interrupted" } else { "running" };
    let rows = report.iterations.iter().map(|it| iteration(it, at_work));
    Section::new("Iterations").table("Every attempt, oldest first", &head, rows)
}

fn iteration(it: &Iteration, at_work: &'static str) -> Vec<Cell> {
    let took = it.ended_at.map(|ended| Millis::from(ended.duration_since(it.started_at).unsigned_abs()));
    let exit = match (it.exit_code, it.signal) {
        (Some(code), _) => code.to_string(),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => String::new(),
    };
    let refunded = if it.charged || it.ended_at.is_none() { "" } else { ", refunded" };
    let gates: Vec<_> = it
        .gates
        .iter()
        .map(|gate| format!("{} {}", gate.name, if gate.passed { "passed" } else { "failed" }))
        .collect();
    vec![
        Cell::number(it.id()),
        Cell::plain(format!("{}{refunded}", it.outcome.map_or(at_work, outcome))),
        Cell::number(exit),
        Cell::number(took.map(|took| took.to_string()).unwrap_or_default()),
        Cell::plain(gates.join(", ")),
        Cell::plain(phrase::used(&it.usage)),
        Cell::plain(it.said().unwrap_or_default()),
    ]
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Claimed => "claimed",
        Outcome::Ended => "no claim",
        Outcome::Failed => "failed",
        Outcome::TimeLimit => "took too long",
        Outcome::Silence => "silent for too long",
        Outcome::LoopDuration => "the loop's time was over",
        Outcome::Cancelled => "cancelled",
        Outcome::Interrupted => "interrupted",
        Outcome::Lost => "lost",
        Outcome::NotStarted => "not started",
        Outcome::OutputLost => "output lost",
        Outcome::Budget => "budget used up",
        Outcome::Limit => "provider's limit",
        Outcome::Outage => "provider's outage",
        Outcome::Unable => "unable to work",
        Outcome::Unresponsive => "stopped before its first event",
    }
}

fn files(report: &Report) -> Section {
    let section = Section::new("Files changed");
    let Some(files) = &report.files else { return section };
    let sum = |of: &dyn Fn(&refrain_core::view::report::FileChange) -> Option<u64>| {
        u32::try_from(files.changed.iter().filter_map(of).sum::<u64>()).unwrap_or(u32::MAX)
    };
    let count = u32::try_from(files.changed.len() as u64 + files.more).unwrap_or(u32::MAX);
    let of = if files.more > 0 { ", of which the first are named" } else { "" };
    let section = section.words(format!(
        "{}{of}: {} added, {} removed, between {} and tree {}.",
        counted(count, "file", "files"),
        counted(sum(&|file| file.added), "line", "lines"),
        sum(&|file| file.removed),
        files.from.as_ref().map_or("nothing".to_owned(), |tree| format!("tree {}", tree.short())),
        files.to.short(),
    ));
    let section = match report.base.as_ref().map(not_counted) {
        Some(words) if !words.is_empty() => section.words(words),
        Some(_) | None => section,
    };
    let last = report.iterations.last().map_or(0, |last| last.n);
    let section = match report.proof.as_ref().is_some_and(|proof| proof.iteration < last) {
        true => section.words(format!("Iteration {last} came after that tree.")),
        false => section,
    };
    let lines =
        |count: Option<u64>| Cell::number(count.map_or_else(|| "binary".to_owned(), |it| it.to_string()));
    let rows = files.changed.iter().map(|file| {
        let change = match file.change {
            Change::Added => "added",
            Change::Modified => "modified",
            Change::Retyped => "retyped",
            Change::Deleted => "deleted",
        };
        vec![Cell::plain(change), lines(file.added), lines(file.removed), Cell::code(file.path.to_string())]
    });
    section.table("Files that differ", &["change", "added", "removed", "file"], rows)
}

/// The files whose content before the loop is not on record.
fn not_counted(base: &BaseReport) -> String {
    const NAMED: usize = 10;
    let named: Vec<_> = base.dirty.iter().take(NAMED).map(ToString::to_string).collect();
    let all = base.dirty.len() as u64 + base.dirty_more;
    let more = match all - named.len() as u64 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    match all {
        0 => String::new(),
        1 => format!(
            "Not counted: {}. It had changes in no commit when the loop began, so what the loop changed in it is not known.",
            named.join("")
        ),
        _ => format!(
            "Not counted: {}{more}. They had changes in no commit when the loop began, so what the loop changed in them is not known.",
            named.join(", ")
        ),
    }
}

fn commits(report: &Report) -> Section {
    let rows = report.commits.iter().map(|commit| {
        vec![
            Cell::code(commit.commit.to_string()),
            Cell::number(commit.iteration),
            Cell::plain(if commit.by_agent { "the agent" } else { "Refrain" }),
            Cell::code(commit.tree.as_ref().map_or("", |tree| tree.as_str())),
        ]
    });
    let section = Section::new("Commits");
    let section = section.table("Commits made in the loop", &["commit", "iteration", "by", "tree"], rows);
    let left_out = report
        .left_out
        .iter()
        .map(|left| vec![Cell::code(left.path.to_string()), Cell::plain(left.why.to_string())]);
    section.table("What was left out of them", &["not committed", "as"], left_out)
}

fn spent(report: &Report) -> Section {
    let known = |usage: &Usage| {
        let has_some = usage.input_tokens.is_some() || usage.output_tokens.is_some();
        has_some || usage.cost_usd.is_some() || usage.is_incomplete
    };
    let spent = &report.spent;
    let all = [
        ("the agent", spent.workers),
        ("reviewers", spent.reviewers),
        ("critics", spent.critics),
        ("all together", spent.total),
    ];
    let rows = all.into_iter().filter(|(_, usage)| known(usage)).map(|(name, usage)| {
        let unknown = || "unknown".to_owned();
        let words = |count| view::sum(&thousands(count), usage.tokens_at_least);
        let tokens = |count: Option<u64>| Cell::number(count.map_or_else(unknown, words));
        let cost = usage.cost().unwrap_or_else(unknown);
        vec![
            Cell::plain(name),
            tokens(usage.input_tokens),
            tokens(usage.cached_input_tokens),
            tokens(usage.output_tokens),
            Cell::number(cost),
        ]
    });
    let head = ["who", "tokens in", "of these cached", "tokens out", "cost"];
    Section::new("What it used").table("Tokens and money", &head, rows)
}

fn evidence(report: &Report, folder: Option<&str>) -> Section {
    let tree = report.proof.as_ref().and_then(|proof| proof.tree.as_ref());
    let journal = format!("{} records, hash {}", report.journal.records, report.journal.hash);
    let section = Section::new("How to check this").facts(vec![
        ("run", Cell::code(format!("refrain verify {}", folder.unwrap_or(report.id.as_str())))),
        ("journal", Cell::code(journal)),
        ("signature", Cell::plain(&report.signature)),
        ("tree", Cell::code(tree.map(ToString::to_string).unwrap_or_default())),
    ]);
    let rows = report.evidence.iter().map(|file| {
        vec![Cell::code(&file.path), Cell::number(file.seal.bytes), Cell::code(&file.seal.blake3)]
    });
    let head = ["file", "bytes", "blake3"];
    section.table("What was kept, in the loop's folder", &head, rows).on_pages_only()
}
