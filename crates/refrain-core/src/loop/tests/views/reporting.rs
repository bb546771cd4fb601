//! Reports on journals: what they say, that each prefix has one, and that a changed one is detected.

use std::collections::BTreeMap;

use crate::agent::{AgentReport, Scope, Usd};
use crate::event::{
    Ask, AttemptFinished, AttemptSeals, ClaimSource, CritiqueFinished, End, Event, Exit, GateFinished,
    ReviewResult, Seal, Urgency,
};
use crate::gate::{Check, ReviewSpec, Verdict};
use crate::git::Checkout;
use crate::r#loop::tests::journal::{
    Journal, candidate_taken, claiming, criticised, finished, gate_finished, gates, id, oid, other_agent,
    reporting, task, tokens,
};
use crate::protect::{OtherProgram, ProtectionBreach};
use crate::spec::{AgentKind, AgentSpec, CritiqueSpec, OnStuck, Spec};
use crate::view::report::{
    AttemptFile, Differences, JournalMark, Report, ReportFacts, ReportFile, SealedFile, Trail, Work, make,
    work,
};

fn report(journal: &Journal) -> Report {
    let trail = Trail::of(&journal.records);
    let files =
        trail.files.iter().map(|file| SealedFile { path: format!("{file:?}"), seal: file.seal.clone() });
    let found = ReportFacts {
        refrain: "0.2.0".into(),
        journal: JournalMark { records: journal.state.seq, hash: "ab".into() },
        runner: Some(true),
        runner_error: None,
        base_tree: None,
        files: None,
        evidence: files.collect(),
        gate_logs: BTreeMap::new(),
    };
    make(&journal.state, trail, found)
}

fn given(report: &Report) -> ReportFile {
    ReportFile::read(&serde_json::to_string(report).unwrap()).unwrap()
}

#[test]
fn however_it_ended_there_is_a_report_that_agrees_with_itself() {
    let ends = [
        End::Completed { claim: ClaimSource::Promise },
        End::Cancelled,
        End::Paused,
        End::IterationCap,
        End::TimedOut,
        End::BudgetExceeded { by: Default::default() },
        End::Stuck,
    ];
    for end in ends {
        let journal = Journal::ended(end);
        let report = report(&journal);
        assert_eq!(given(&report).differences(&report, &[]).unwrap(), Differences::default(), "{end:?}");
        assert_eq!((report.refrain.started.as_str(), report.refrain.reported.as_str()), ("0.1.0", "0.2.0"));
    }
}

#[test]
fn work_is_shown_from_the_folder_while_the_loop_owns_it() {
    let shows = |journal: &Journal, expected: Work<'_>| {
        assert_eq!(work(&journal.state, &Trail::of(&journal.records)), expected);
    };
    let mut journal = Journal::running();
    shows(&journal, Work::Folder);
    // The slot may have been reassigned: it was given back before anything was proven.
    journal.state.git.released = true;
    shows(&journal, Work::Gone);
    // It is still there, with what no commit has.
    journal.state.git.kept = Some("it has 1 file that is not committed".to_owned());
    shows(&journal, Work::Folder);
    let refused = |change: fn(&mut Spec)| {
        let journal = Journal::gated_by(gates([true]), change).takes(0).gates_end(&[1]);
        journal.attempts(claiming(ClaimSource::Promise)).takes(1).gates_end(&[1])
    };
    let (last, apart): (_, fn(&mut Spec)) = (oid(1), |spec| {
        spec.git.checkout = Checkout::Worktree { branch: "loop/mend".into(), from: "HEAD".into() };
    });
    // Ended after a candidate.
    let journal = refused(apart).asks(Ask::Pause(Urgency::Now)).obey();
    shows(&journal, Work::Tree(&last));
    // Ended after an attempt of which none was taken.
    let unseen = |change, ask| {
        let journal: Journal = refused(change).attempts(finished(Exit::Code(0))).asks(ask);
        journal.obey()
    };
    let mut journal = unseen(apart, Ask::Pause(Urgency::Now));
    shows(&journal, Work::Folder);
    journal.state.spec.task = Some(task());
    shows(&journal, Work::Tree(&last));
    journal.state.spec.task = None;
    journal.state.git.released = true;
    shows(&journal, Work::Tree(&last));
    // The folder that it was started in is not its own any more once it is over, but nothing else has the last attempt.
    shows(&unseen(|_| (), Ask::Pause(Urgency::Now)), Work::Folder);
    shows(&unseen(|_| (), Ask::Cancel(Urgency::Now)), Work::Folder);
    shows(&refused(|_| ()).asks(Ask::Cancel(Urgency::Now)).obey(), Work::Tree(&last));
    shows(&Journal::ended(End::Cancelled), Work::Folder);
}

#[test]
fn changed_values_of_a_report_are_named_by_their_path() {
    let report = report(&Journal::ended(End::Stuck));
    let text = serde_json::to_string(&report).unwrap();
    let forged = text.replace("\"verified\":false", "\"verified\":true").replace("wip/mend", "wip/other");
    let given = ReportFile::read(&forged).unwrap();
    assert_eq!(given.differences(&report, &[]).unwrap().certain, ["reason", "saved.branch", "verified"]);
    let unknown = ["saved.branch", "reason"].map(str::to_owned);
    let found = given.differences(&report, &unknown).unwrap();
    assert_eq!(found.certain, ["verified"]);
    assert_eq!(found.unknown, ["reason", "saved.branch"]);
    for none in [
        "",
        "[]",
        "{}",
        &text.replace("\"schema\":1", "\"schema\":2"),
        &text.replace("\"journal\":", "\"j\":"),
    ] {
        assert!(ReportFile::read(none).is_err(), "{none}");
    }
}

#[test]
fn a_loop_that_went_on_with_another_agent_names_both() {
    let journal = Journal::stuck(OnStuck::Change(Box::new(other_agent()))).obey();
    let journal = journal.attempts(claiming(ClaimSource::Promise)).takes(9).gates_end(&[0]);
    let agents = report(&journal).agents;
    let told: Vec<_> = agents.iter().map(|agent| (agent.model.as_deref(), agent.attempts)).collect();
    assert_eq!(told, [(None, 5), (Some("another"), 1)]);
}

#[test]
fn work_that_was_kept_is_named() {
    let saved = report(&Journal::ended(End::Stuck)).saved.unwrap();
    assert_eq!((saved.branch.as_deref(), saved.why_not), (Some("wip/mend"), None));
}

#[test]
fn a_claim_with_touched_protected_paths_names_them() {
    let other = ProtectionBreach::Program(OtherProgram {
        name: "sh".into(),
        before: Some("/bin/sh".into()),
        now: None,
    });
    let journal = Journal::gated([true]).takes(0).gates_end(&[0]).attempts(claiming(ClaimSource::Promise));
    let taken = || {
        let Event::CandidateTaken { tree, partial, .. } = candidate_taken(Some(1)) else { unreachable!() };
        Event::CandidateTaken { tree, partial, touched: vec![other.clone()], changed: Vec::new() }
    };
    // And again, as the gates may have changed what they were asked about.
    let journal = journal.then(taken()).gates_end(&[0]).then(taken());
    let report = report(&journal);
    assert_eq!(report.refused.len(), 1);
    assert_eq!(report.refused[0].why, [other.to_string()]);
    assert_eq!(report.proof.unwrap().touched, [other.to_string()]);
}

#[test]
fn sealed_files_are_listed_with_their_place() {
    let seal = |bytes| Some(Seal { bytes, blake3: "ab".repeat(32) });
    let attempt = AttemptFinished {
        sealed: AttemptSeals { prompt: seal(1), output: seal(2) },
        ..claiming(ClaimSource::Promise)
    };
    let gate = |bytes| GateFinished { log: seal(bytes), ..gate_finished(0, Exit::Code(0)) };
    let ends = |journal: Journal, bytes| journal.obey().then(Event::GateFinished(Box::new(gate(bytes))));
    let journal = ends(Journal::gated([true]).takes(0), 3).attempts(attempt).takes(1);
    let files = Trail::of(&ends(journal, 4).records).files;
    let told: Vec<_> = files.into_iter().map(|file| (file.of, file.kept, file.seal.bytes)).collect();
    let log = || AttemptFile::Gate("gate-0".parse().unwrap(), 1);
    assert_eq!(
        told,
        [
            (id(0, 1), log(), 3),
            (id(1, 1), AttemptFile::Prompt, 1),
            (id(1, 1), AttemptFile::Output { streams: false }, 2),
            (id(1, 1), log(), 4),
        ]
    );
}

#[test]
fn usage_of_agents_reviewers_and_critics_is_listed_separately() {
    let claude = AgentSpec { kind: AgentKind::Claude, ..other_agent() };
    let used = |input: u64, cost: u64| {
        let report = AgentReport {
            tokens: Some((Scope::Attempt, tokens(input, 1))),
            cost: Some((Scope::Attempt, Usd(cost))),
            is_final: true,
            ..AgentReport::default()
        };
        Some(Box::new(report))
    };
    let mut reviewer = gates([false]);
    let review = ReviewSpec { agent: claude.clone(), spec: "It counts.".into() };
    reviewer[0].check = Check::Review(Box::new(review));
    let journal = Journal::gated_by(reviewer, |spec| {
        spec.agent = claude.clone();
        spec.critique =
            Some(CritiqueSpec { every: 1, critic: claude.clone(), timeout: CritiqueSpec::TIMEOUT });
    });
    let reviewed = |journal: Journal| {
        let review = Some(Box::new(ReviewResult { verdict: Verdict::Pass, report: used(20, 200) }));
        let ended = GateFinished { review, ..gate_finished(0, Exit::Code(0)) };
        journal.obey().then(Event::GateFinished(Box::new(ended)))
    };
    let attempt = reporting(|report| *report = *used(10, 100).unwrap());
    let journal = reviewed(journal.takes(0).attempts(attempt).takes(1));
    let criticised = CritiqueFinished { report: used(30, 300), ..criticised(Exit::Code(0)) };
    let journal = journal.obey().then(Event::CritiqueFinished(Box::new(criticised)));
    // One that its runner did not survive is paid, too.
    let runner = crate::r#loop::tests::journal::runner(2);
    let lost =
        Event::RunnerStarted { runner, interrupted: None, adopted: None, judged: used(5, 50), fence: None };
    let again = reporting(|report| *report = *used(0, 0).unwrap());
    let journal = journal.attempts(again).takes(2).gates().then(lost);
    let said = report(&journal).critiques;
    assert_eq!((said.len(), said[0].iteration, said[0].error.clone()), (1, 1, None));
    let spent = report(&journal).spent;
    let tokens = [spent.workers, spent.reviewers, spent.critics, spent.total].map(|used| used.input_tokens);
    assert_eq!(tokens, [Some(10), Some(25), Some(30), Some(65)]);
    let cost = |usage: crate::view::Usage| (usage.cost_usd.unwrap() * 1e9).round();
    assert_eq!(cost(spent.workers) + cost(spent.reviewers) + cost(spent.critics), cost(spent.total));
}

#[test]
fn every_prefix_of_a_journal_has_a_report() {
    let journal = Journal::ended(End::Stuck);
    let mut before = Journal {
        records: journal.records[..1].to_vec(),
        ..Journal::of(crate::r#loop::tests::journal::spec())
    };
    before.state = crate::LoopState::begin(&journal.records[0]).unwrap();
    for record in &journal.records[1..] {
        before.state.apply(record).unwrap();
        before.records.push(record.clone());
        let report = report(&before);
        assert_eq!(report.journal.records, record.seq);
        assert_eq!(given(&report).differences(&report, &[]).unwrap(), Differences::default());
    }
}
