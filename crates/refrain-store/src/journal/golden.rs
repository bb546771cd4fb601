//! Journals of every format that was ever released, with every kind of event: they are read for ever.
//!
//! A test that fails here says that stored data would no longer be understood. A new kind of event is added to
//! [`everything`] and the last format's file written anew with `REFRAIN_BLESS=1 cargo test -p refrain-store golden`;
//! once a format is released its file never changes again. Format 1 is that of release 0.1.0.

use std::fs;

use camino::Utf8PathBuf;
use jiff::civil::date;
use refrain_core::agent::{AgentReport, Fault, FaultKind, Scope, Session, Tokens, Until, Usd};
use refrain_core::budget::{CapKind, CapUsage, Caps};
use refrain_core::event::{
    ApprovedTree, Ask, AttemptFinished, AttemptSeals, BlockReason, CritiqueFinished, End, Exit, GateFinished,
    Identity, Process, PushReport, ReviewResult, Seal, StopReason, Urgency, Wait, WaitKind,
};
use refrain_core::gate::{Check, GateSpec, GateWhen, ReviewSpec, Verdict};
use refrain_core::git::{
    Base, Checkout, CommitReport, CommitResult, Dirty, ExposedSecret, GitSpec, LeftOutReason, Oid,
    OmittedPath, Operation, RepoPath, SkipReason, Workflow,
};
use refrain_core::memory::{self, MemorySpec, RecalledMemory};
use refrain_core::mirror::Mirror;
use refrain_core::promise::NearMiss;
use refrain_core::prompt::state_file::WorkStatus;
use refrain_core::protect::{
    Change, Kind, LocalCommit, OtherProgram, OutsideLink, Part, PartViolation, Program, ProtectionBreach,
    Rule, Violation,
};
use refrain_core::session::{self, Isolation, SessionSpec};
use refrain_core::spec::{AgentKind, CritiqueSpec, Millis, OnStuck, ProtectSpec, StuckSpec};
use refrain_core::work::WorkDigest;
use refrain_core::{AttemptId, Event, Record};

use super::tests::{Sandbox, at, sandbox, started, unsigned};
use super::{Durability, Journal, records, whole};

const FORMAT_1: &str = include_str!("golden/format-1.jsonl");
const FORMAT_2: &str = include_str!("golden/format-2.jsonl");

fn finished(exit: Exit) -> Event {
    Event::AttemptFinished(Box::new(AttemptFinished {
        work: work(1),
        stdout_bytes: 12,
        preview: "not yet".into(),
        sealed: AttemptSeals { prompt: Some(seal()), output: Some(seal()) },
        ..AttemptFinished::new(exit)
    }))
}

fn work(n: usize) -> Option<WorkDigest> {
    format!("{n:032x}").parse().ok()
}

fn seal() -> Seal {
    Seal { bytes: 12, blake3: "ab".repeat(32) }
}

/// The end of an agent that streams, with all that a report can hold.
fn reported(exit: Exit, until: Until) -> Event {
    let Event::AttemptFinished(finished) = finished(exit) else { unreachable!("it is an end") };
    let report = AgentReport {
        session: Session {
            id: Some("a-session".into()),
            model: Some("a-model".into()),
            version: Some("2.1.0".into()),
        },
        tokens: Some((Scope::Session, Tokens { input: Some(1_200), cached_input: Some(300), output: None })),
        cost: Some((Scope::Attempt, Usd(12_345_678))),
        fault: Some(Fault { kind: FaultKind::Limit, message: "used up".into(), until: Some(until) }),
        is_final: true,
        resumed: true,
        last_tool: Some("Bash".into()),
        pool: Some("claude api-key 3f2a91".into()),
        unknown: 3,
        ..AgentReport::default()
    };
    Event::AttemptFinished(Box::new(AttemptFinished { report: Some(Box::new(report)), ..*finished }))
}

/// The end of a gate, with all that it can hold.
fn tested(exit: Exit, no_test: Option<&str>) -> Event {
    Event::GateFinished(Box::new(GateFinished {
        duration: Millis(1_500),
        bytes: 12,
        no_test: no_test.map(str::to_owned),
        preview: "1 passed".into(),
        left: exit == Exit::Code(0) && no_test.is_none(),
        fingerprint: (exit != Exit::Code(0)).then(|| "0123456789abcdef".parse().unwrap()),
        log: Some(seal()),
        ..GateFinished::new("tests".parse().unwrap(), exit)
    }))
}

/// The end of a gate that is an agent.
fn reviewed() -> Event {
    let Event::GateFinished(gate) = tested(Exit::Code(0), None) else { unreachable!("it is an end") };
    let verdict = Verdict::Fail { findings: "It counts nothing.".into() };
    Event::GateFinished(Box::new(GateFinished {
        gate: "spec".parse().unwrap(),
        left: false,
        review: Some(Box::new(ReviewResult { verdict, report: None })),
        refused: Vec::new(),
        ..*gate
    }))
}

fn oid(number: u32) -> Oid {
    format!("{number:040x}").parse().unwrap()
}

fn base_taken() -> Event {
    let dirty = vec![
        Dirty { path: RepoPath::from_bytes(b"notes/\xff"), stamp: Some(7) },
        Dirty { path: RepoPath::from_bytes(b"gone"), stamp: None },
    ];
    Event::BaseTaken(Box::new(Base {
        head: Some(oid(1)),
        branch: Some("loop/a".into()),
        dirty,
        operation: Some(Operation::Rebase),
        protected: Some(oid(7)),
        hidden: vec![RepoPath::from_bytes(b"local.toml")],
        programs: vec![Program {
            name: "cargo".into(),
            path: Some("/usr/bin/cargo".into()),
            blake3: Some("cd".repeat(32)),
        }],
    }))
}

fn settled(iteration: u32, result: CommitResult) -> Event {
    let left_out = |path: &[u8], why| OmittedPath { path: RepoPath::from_bytes(path), why };
    Event::CommitSettled(Box::new(CommitReport {
        iteration,
        result,
        head: Some(oid(2)),
        by_agent: vec![oid(9)],
        lost: Some(oid(8)),
        exposed: vec![ExposedSecret {
            commit: oid(9),
            path: RepoPath::from_bytes(b"config.toml"),
            what: "a GitHub token".into(),
            line: Some(3),
            allowed: true,
        }],
        taken: vec![RepoPath::from_bytes(b"mine")],
        left_out: vec![
            left_out(b".env", LeftOutReason::Secret { what: "a file of secrets".into(), line: None }),
            left_out(b"core", LeftOutReason::TooLarge { bytes: 1 << 30 }),
            left_out(b"gone", LeftOutReason::DirtyBefore),
            left_out(b"vendor/x", LeftOutReason::Repository),
            left_out(b"fifo", LeftOutReason::Unreadable),
        ],
        left_out_more: 3,
    }))
}

fn touched() -> Vec<ProtectionBreach> {
    let path = RepoPath::from_bytes;
    let violation = |change, rule| {
        ProtectionBreach::Path(Violation { path: path(b"ci/run"), change, rule, glob: "ci/**".into() })
    };
    vec![
        violation(Change::Added(Kind::Link), Rule::Frozen),
        violation(Change::Deleted, Rule::Existing),
        ProtectionBreach::Part(PartViolation { path: path(b"package.json"), key: Some("scripts".into()) }),
        ProtectionBreach::Program(OtherProgram {
            name: "cargo".into(),
            before: Some("/usr/bin/cargo".into()),
            now: None,
        }),
        ProtectionBreach::Link(OutsideLink {
            path: path(b"sum.sh"),
            target: "/home/me/sum.sh".into(),
            inside: false,
        }),
        ProtectionBreach::Hidden(path(b"src/sum.sh")),
        ProtectionBreach::Unlike(path(b"src/sum.txt")),
        ProtectionBreach::Submodule(LocalCommit { path: path(b"vendor/sum"), commit: oid(4) }),
    ]
}

/// One loop in which everything happens, in an order that can be.
fn everything() -> Vec<Event> {
    let process = Process { pid: 7, start: 8 };
    let runner = || Identity { process, boot: "boot".into(), host: "host".into() };
    let id = |iteration, attempt| AttemptId { iteration, attempt };
    let asked = |ask| Event::Asked { request: None, ask, by: Default::default() };
    let Event::LoopStarted(mut start) = started() else { unreachable!("it is a start") };
    start.spec.git = GitSpec {
        workflow: Workflow::Commit,
        commit_template: "loop: iteration {iteration}".parse().unwrap(),
        checkout: Checkout::Worktree { branch: "loop/a".into(), from: "HEAD".into() },
        candidates: true,
        ..GitSpec::default()
    };
    start.spec.gates = vec![GateSpec {
        name: "tests".parse().unwrap(),
        check: Check::Command("cargo test".into()),
        hard: true,
        timeout: Millis(600_000),
        retries: 1,
        when: GateWhen::Iteration,
        completes: false,
        own_tests: false,
        by_default: false,
    }];
    let mut other = start.spec.agent.clone();
    other.model = Some("another".into());
    start.spec.stuck =
        StuckSpec { threshold: 1, by_failure: true, answer: OnStuck::Change(Box::new(other.clone())) };
    start.spec.critique =
        Some(CritiqueSpec { every: 1, critic: start.spec.agent.clone(), timeout: CritiqueSpec::TIMEOUT });
    let reviewer = ReviewSpec { agent: start.spec.agent.clone(), spec: "It counts.".into() };
    start.spec.gates.push(GateSpec {
        name: "spec".parse().unwrap(),
        check: Check::Review(Box::new(reviewer)),
        hard: false,
        timeout: Millis(300_000),
        retries: 0,
        when: GateWhen::Claim,
        completes: false,
        own_tests: false,
        by_default: false,
    });
    start.spec.protect = ProtectSpec {
        frozen: vec!["ci/**".into()],
        existing: vec!["tests/".into()],
        parts: vec![Part {
            path: RepoPath::from_bytes(b"package.json"),
            frozen: vec!["scripts".into()],
            may_gain: vec!["workspaces".into()],
        }],
        modules: Vec::new(),
    };
    (start.spec.clean_checkout, start.spec.approval, start.spec.keep_failed) = (true, true, true);
    start.spec.mirrors = vec![Mirror::Ralph];
    let told = RecalledMemory {
        id: "m-0123456789".parse().unwrap(),
        kind: memory::Kind::Fact,
        text: "Tests need a database".into(),
        at: at(0),
        elsewhere: Some("other".into()),
    };
    start.spec.memory = Some(MemorySpec { budget: 4_000, recalled: vec![told] });
    let cap = Some(Usd(20_000_000_000));
    start.spec.caps = Caps { day: cap, project_day: cap, project: cap };
    start.spec.session = Some(SessionSpec {
        command: "/refrain:loop".into(),
        args: "--loop-isolated Mend it.".into(),
        isolation: Isolation::Subagent,
    });
    let bound = |id: Option<&str>| {
        let Identity { process, boot, host } = runner();
        let (agent, id) = (AgentKind::Claude, id.map(str::to_owned));
        Event::SessionBound(session::Session { agent, id, process: Some(process), boot, host })
    };
    let Event::AttemptFinished(turn) = finished(Exit::Unseen) else { unreachable!("it is an end") };
    let turn = AttemptFinished { idle: true, ..*turn };
    let review = |run| Event::GateStarted { gate: "spec".parse().unwrap(), run };
    let gate = |run| Event::GateStarted { gate: "tests".parse().unwrap(), run };
    let taken = |tree| Event::CandidateTaken {
        tree: Some(oid(tree)),
        partial: tree == 3,
        touched: match tree {
            12 => touched(),
            _ => Vec::new(),
        },
        changed: match tree {
            12 => vec![RepoPath::from_bytes(b"report.xml")],
            _ => Vec::new(),
        },
    };
    let standing = CapUsage {
        which: CapKind::ProjectDay,
        day: date(2023, 11, 14),
        cap: Usd(20_000_000_000),
        spent: Usd(19_000_000_000),
        reserved: Usd(1_000_000_000),
    };
    let limits = start.spec.limits.clone();
    let Event::AttemptFinished(near) = finished(Exit::Signal(15)) else { unreachable!("it is an end") };
    let Event::AttemptFinished(adopted) = reported(Exit::Unseen, Until::After(Millis(1_000))) else {
        unreachable!("it is an end")
    };
    let judged = adopted.report.clone();
    let (summary, state) = (Some("found two bugs".into()), Some(WorkStatus::Blocked));
    let near = AttemptFinished { near_miss: Some(NearMiss::InSentence), left: true, summary, state, ..*near };
    // Three times in the same way: that is stuck here.
    let fails = |n| {
        let begins = [Event::IterationBegun { iteration: n, work: None }, Event::AttemptStarted(id(n, 1))];
        let ends = [Event::AttemptSpawned { process }, finished(Exit::Code(0)), taken(10 + n)];
        let gates = [gate(1), tested(Exit::Code(1), None), gate(2), tested(Exit::Code(1), None)];
        begins.into_iter().chain(ends).chain(gates)
    };
    let critique = Event::CritiqueFinished(Box::new(CritiqueFinished {
        exit: Exit::Code(0),
        feedback: Some("It goes in circles.".into()),
        error: None,
        left: true,
        report: None,
    }));
    let mut events = vec![
        Event::LoopStarted(start),
        Event::RunnerStarted {
            runner: runner(),
            interrupted: None,
            adopted: None,
            judged: None,
            fence: None,
        },
        Event::BaseRefused { error: "a branch loop/a exists already".into() },
        Event::LoopEnded(End::Blocked { why: BlockReason::Repository }),
        Event::LoopResumed { limits: limits.clone(), approved: None, no_sandbox: false },
        Event::RunnerStarted {
            runner: runner(),
            interrupted: None,
            adopted: None,
            judged: None,
            fence: None,
        },
        base_taken(),
        Event::CandidateRefused { error: "fatal: no".into(), bad_work: false },
        Event::LoopEnded(End::BudgetExceeded { by: Some(standing) }),
        Event::LoopResumed { limits: limits.clone(), approved: None, no_sandbox: false },
        Event::RunnerStarted {
            runner: runner(),
            interrupted: None,
            adopted: None,
            judged: None,
            fence: None,
        },
        taken(1),
        gate(1),
        Event::GateSpawnFailed { error: "no such folder".into() },
        gate(2),
        Event::GateStopRequested { because: StopReason::TimeLimit },
        tested(Exit::Signal(15), None),
        Event::IterationBegun { iteration: 1, work: None },
        Event::AttemptStarted(id(1, 1)),
        Event::AttemptSpawned { process },
        Event::JournalRestored { bytes: 900, kept_as: None },
        Event::RunnerStarted {
            runner: runner(),
            interrupted: Some(id(1, 1)),
            adopted: None,
            judged: None,
            fence: None,
        },
        Event::JournalTorn { bytes: 3, kept_as: "torn-900".into() },
        Event::AttemptStarted(id(1, 2)),
        Event::AttemptSpawned { process },
        asked(Ask::Steer("mind the gap".into())),
        Event::AttemptStopRequested { because: StopReason::TimeLimit },
        Event::AttemptFinished(Box::new(near)),
        Event::AttemptSwept { killed: 2, survivors: vec![9], names: vec![] },
        taken(3),
        gate(1),
        tested(Exit::Code(0), Some("0 tests")),
        gate(2),
        tested(Exit::Code(0), None),
        Event::AttemptSwept { killed: 1, survivors: vec![], names: vec![] },
        taken(3),
        settled(1, CommitResult::Made { commit: oid(2), tree: oid(3) }),
        Event::WaitStarted(Wait { kind: WaitKind::Pace, until: at(900) }),
        asked(Ask::Proceed),
        bound(None),
        bound(Some("s-1")),
        Event::IterationBegun { iteration: 2, work: work(2) },
        Event::AttemptStarted(id(2, 1)),
        Event::AttemptFinished(Box::new(turn)),
        taken(12),
        gate(1),
        tested(Exit::Code(1), None),
        gate(2),
        tested(Exit::Code(1), None),
        Event::SessionLeft,
    ];
    events.extend((3..5).flat_map(fails));
    events.extend([
        Event::AgentChanged(Box::new(other)),
        Event::CritiqueStarted { iteration: 4 },
        Event::CritiqueStopRequested { because: StopReason::TimeLimit },
        critique,
        Event::AttemptSwept { killed: 1, survivors: vec![], names: vec![] },
    ]);
    events.extend(fails(5));
    events.extend([
        Event::CritiqueStarted { iteration: 5 },
        Event::CritiqueFailed { error: "no such file".into() },
        Event::IterationBegun { iteration: 6, work: None },
        Event::AttemptStarted(id(6, 1)),
        Event::AttemptSpawnFailed { error: "no such file".into() },
        Event::WorkUnsaved { why: "there is no git repository".into() },
        Event::LoopEnded(End::Blocked { why: BlockReason::AgentMissing }),
        Event::LoopResumed { limits: limits.clone(), approved: None, no_sandbox: false },
        Event::RunnerStarted {
            runner: runner(),
            interrupted: None,
            adopted: None,
            judged: None,
            fence: None,
        },
        Event::AttemptStarted(id(6, 2)),
        Event::AttemptSpawned { process },
        reported(Exit::Code(1), Until::At(at(2_000))),
        Event::WaitStarted(Wait { kind: WaitKind::Limit, until: at(2_002) }),
        asked(Ask::Proceed),
        Event::AttemptStarted(id(6, 3)),
        Event::AttemptSpawned { process },
        Event::RunnerStarted {
            runner: runner(),
            interrupted: Some(id(6, 3)),
            adopted: Some(adopted),
            judged: None,
            fence: None,
        },
        asked(Ask::Proceed),
        Event::AttemptStarted(id(6, 4)),
        Event::AttemptSpawned { process },
        finished(Exit::Code(0)),
        taken(4),
        gate(1),
        tested(Exit::Code(0), None),
        Event::AttemptSwept { killed: 1, survivors: vec![], names: vec![] },
        review(1),
        Event::RunnerStarted { runner: runner(), interrupted: None, adopted: None, judged, fence: None },
        review(2),
        reviewed(),
        taken(4),
        Event::LoopEnded(End::Blocked { why: BlockReason::Approval }),
        Event::LoopResumed {
            limits,
            approved: Some(ApprovedTree { attempt: id(6, 4), tree: Some(oid(4)) }),
            no_sandbox: false,
        },
        Event::RunnerStarted {
            runner: runner(),
            interrupted: None,
            adopted: None,
            judged: None,
            fence: None,
        },
        taken(4),
        settled(6, CommitResult::Skipped(SkipReason::Hook { said: "no".into() })),
        Event::WorkSaved {
            branch: "wip/ralph-fail-a".into(),
            commit: oid(8),
            pushed: Some(PushReport { remote: "origin".into(), error: Some("no".into()) }),
            mixed: vec![RepoPath::from_bytes(b"src/a")],
        },
        Event::Asked {
            request: "1700000000000-0000002a".parse().ok(),
            ask: Ask::Pause(Urgency::Now),
            by: Default::default(),
        },
        asked(Ask::Cancel(Urgency::AfterIteration)),
        Event::WorktreeReleased { kept: Some("src/a is not committed".into()), branch_removed: false },
        Event::LoopEnded(End::Cancelled),
    ]);
    events
}

#[test]
fn a_journal_of_this_format_is_read_as_it_was_meant() {
    let sandbox = sandbox();
    let mut events = everything().into_iter().zip(0..);
    if option_env!("REFRAIN_BLESS").is_some() {
        let (start, second) = events.next().unwrap();
        let mut journal: Journal = Journal::create(sandbox.loop_dir.clone(), start, at(second)).unwrap();
        events.by_ref().for_each(|(event, second)| journal.push(event, at(second)).unwrap());
        journal.commit(Durability::Written).unwrap();
        let golden = Utf8PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/journal/golden/format-2.jsonl");
        fs::copy(sandbox.loop_dir.journal(), golden).unwrap();
        return;
    }
    let expected: Vec<Record> =
        events.map(|(event, second)| Record { seq: second as u64 + 1, at: at(second), event }).collect();
    assert_eq!(stored(&sandbox, FORMAT_2), expected);
}

#[test]
fn a_journal_of_format_1_is_read_and_loses_nothing() {
    let sandbox = sandbox();
    let read = stored(&sandbox, FORMAT_1);
    assert_eq!(read.len(), FORMAT_1.lines().count());
    for (record, line) in read.iter().zip(FORMAT_1.lines()) {
        let mut stored: serde_json::Value = serde_json::from_str(line).unwrap();
        stored.as_object_mut().unwrap().remove("hash");
        assert_eq!(serde_json::to_value(record).unwrap(), stored);
    }
}

/// The records of a journal that was written once, with a whole chain of hashes.
fn stored(sandbox: &Sandbox, journal: &str) -> Vec<Record> {
    fs::create_dir_all(&sandbox.loop_dir.0).unwrap();
    crate::write_atomic(&sandbox.loop_dir.journal(), journal.as_bytes()).unwrap();
    let read = records(&sandbox.loop_dir).unwrap();
    assert_eq!(whole(&sandbox.loop_dir, &unsigned(&sandbox.loop_dir)).unwrap().records.len(), read.len());
    read
}
