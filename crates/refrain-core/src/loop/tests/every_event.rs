//! An event of every kind, and journals that pass through every phase.

use super::journal::{
    Journal, asked, base_taken, candidate_taken, claiming, commit_settled, criticised, finished,
    gate_finished, gate_name, id, left, moved, other_agent, pace, published, request, runner, session,
    spawn_failed, spawned, spec, started, stop, unlimited, well, work_saved,
};
use crate::agent::AgentReport;
use crate::event::{Ask, BlockReason, ClaimSource, End, Event, Exit, StopReason, Urgency};
use crate::git::{Checkout, Effect, Workflow};
use crate::spec::{CritiqueSpec, Millis, OnStuck, Spec};

pub(super) fn every_end() -> impl Iterator<Item = End> {
    use ClaimSource::{ExitCode, Gates, Promise, Result, StateFile};
    let claims = [Promise, StateFile, ExitCode, Gates, Result];
    let blocked =
        [BlockReason::Refunds, BlockReason::Churn, BlockReason::AgentMissing, BlockReason::OutputLost];
    [End::Cancelled, End::IterationCap, End::TimedOut, End::Paused]
        .into_iter()
        .chain(claims.map(|claim| End::Completed { claim }))
        .chain(blocked.map(|why| End::Blocked { why }))
}

pub(super) fn heard(name: &str, ask: Ask) -> Event {
    Event::Asked { request: Some(request(name)), ask, by: Default::default() }
}

/// The iterations, effects and attempts that the samples may have.
const ITERATIONS: [u32; 5] = [0, 1, 2, 3, 4];
const EFFECTS: [Effect; 6] =
    [Effect::Push, Effect::Open, Effect::Ready, Effect::Look, Effect::Merge, Effect::Return];

fn ids() -> impl Iterator<Item = crate::AttemptId> {
    (1..=4).flat_map(|n| (1..=4).map(move |k| id(n, k)))
}

/// Makes the list from one row for each kind of event. The rows are the arms of a match as well: a new kind of event
/// does not compile without its row.
macro_rules! rows {
    ($($kind:pat => $shapes:expr,)*) => {
        /// An event of every kind, in all the shapes in which it may or may not fit a journal of at most three
        /// iterations.
        pub(super) fn every_event() -> Vec<Event> {
            let _ = |event: &Event| match event { $($kind => (),)* };
            let mut events = Vec::new();
            $(
                let shapes: Vec<Event> = Vec::from_iter($shapes);
                assert!(!shapes.is_empty() && shapes.iter().all(|event| matches!(event, $kind)), "{shapes:?}");
                events.extend(shapes);
            )*
            events
        }
    };
}

rows! {
    Event::LoopStarted(_) => [started(spec())],
    Event::RunnerStarted { .. } => {
        let started = |interrupted, judged, fence| Event::RunnerStarted {
            runner: runner(2), interrupted, adopted: None, judged, fence };
        let judged = Some(Box::new(AgentReport::default()));
        let idle = [started(None, None, None), started(None, judged, None), started(None, None, Some(2))];
        idle.into_iter().chain(ids().map(move |id| started(Some(id), None, None)))
    },
    Event::SessionBound(_) => [Event::SessionBound(session(Some("s")))],
    Event::SessionLeft => [Event::SessionLeft],
    Event::BaseTaken(_) => [base_taken()],
    Event::BaseRefused { .. } => [Event::BaseRefused { error: "fatal: no".into() }],
    Event::IterationBegun { .. } => ITERATIONS.map(|iteration| Event::IterationBegun { iteration, work: None }),
    Event::AttemptStarted(_) => ids().map(Event::AttemptStarted),
    Event::AttemptSpawned { .. } => [spawned()],
    Event::AttemptSpawnFailed { .. } => [spawn_failed()],
    Event::AttemptStopRequested { .. } => [stop(StopReason::Silence)],
    Event::AttemptFinished(_) => {
        [Exit::Code(0), Exit::Lost].map(|exit| Event::AttemptFinished(Box::new(finished(exit))))
    },
    Event::AttemptSwept { .. } => [Event::AttemptSwept { killed: 2, survivors: vec![9], names: vec![] }],
    Event::CandidateTaken { .. } => [candidate_taken(None), candidate_taken(Some(9))],
    Event::CandidateRefused { .. } => [false, true].map(|bad_work| Event::CandidateRefused { error: "fatal: no".into(), bad_work }),
    Event::GateStarted { .. } => [1, 2].map(|run| Event::GateStarted { gate: gate_name(0), run }),
    Event::GateSpawnFailed { .. } => [Event::GateSpawnFailed { error: "no such folder".into() }],
    Event::GateStopRequested { .. } => [Event::GateStopRequested { because: StopReason::Cancel }],
    Event::GateFinished(_) => [0, 1].map(|place| Event::GateFinished(Box::new(gate_finished(place, Exit::Code(0))))),
    Event::CommitSettled(_) => ITERATIONS.map(commit_settled),
    Event::PublishStarted { .. } => EFFECTS.map(|effect| Event::PublishStarted { effect }),
    Event::PublishSettled(_) => EFFECTS.map(|effect| published(effect, well(effect))),
    Event::CritiqueStarted { .. } => ITERATIONS.map(|iteration| Event::CritiqueStarted { iteration }),
    Event::CritiqueFailed { .. } => [Event::CritiqueFailed { error: "no such file".into() }],
    Event::CritiqueStopRequested { .. } => [Event::CritiqueStopRequested { because: StopReason::Cancel }],
    Event::CritiqueFinished(_) => [Event::CritiqueFinished(Box::new(criticised(Exit::Code(0))))],
    Event::AgentChanged(_) => [Event::AgentChanged(Box::new(other_agent()))],
    Event::WorkSaved { .. } => [work_saved()],
    Event::WorkUnsaved { .. } => [Event::WorkUnsaved { why: "git says no".into() }],
    Event::WorktreeReleased { .. } => [(None, true), (Some("it has work".into()), false)]
        .map(|(kept, branch_removed)| Event::WorktreeReleased { kept, branch_removed }),
    Event::Asked { .. } => [
        heard("new", Ask::Steer("left".into())),
        heard("old", Ask::Proceed),
        heard("later", Ask::Withdraw(request("new"))),
        asked(Ask::Pause(Urgency::Now)),
        asked(Ask::Cancel(Urgency::AfterIteration)),
        asked(Ask::Proceed),
        asked(Ask::AllowHost("packages.example".parse().unwrap())),
    ],
    Event::WaitStarted(_) => [Event::WaitStarted(pace(1))],
    Event::LoopEnded(_) => every_end().map(Event::LoopEnded),
    Event::LoopResumed { .. } => [Event::LoopResumed { limits: unlimited(), approved: None, no_sandbox: false }],
    Event::LoopLeft(_) => [1, 2].map(left),
    Event::LoopMoved(_) => [1, 2].map(moved),
    Event::JournalTorn { .. } => [Event::JournalTorn { bytes: 3, kept_as: "torn".into() }],
    Event::JournalRestored { .. } => [Event::JournalRestored { bytes: 3, kept_as: None }],
}

/// A loop that only attempts, and is asked, crashes, and stops in several ways.
pub(super) fn sample() -> Journal {
    Journal::limited(|limits| {
        (limits.max_iterations, limits.timeout) = (Some(3), Some(Millis(9_000)));
        limits.pause = Some(Millis(1_000));
    })
    .runs(5_000, Exit::Code(1))
    .obey()
    .after_ms(1_000)
    .crashes()
    .then(heard("old", Ask::Steer("left".into())))
    .spawns()
    .after_ms(9_000)
    .obey()
    .exits(Exit::Signal(2))
    .asks(Ask::Pause(Urgency::AfterIteration))
    .obey()
    .resumes()
    .starts()
    .then(spawn_failed())
    .obey()
    .resumes()
    .runs(5_000, Exit::Code(0))
    .obey()
    .asks(Ask::Cancel(Urgency::AfterIteration))
    .obey()
}

pub(super) fn samples() -> Vec<Journal> {
    let mut criticised = spec();
    let critic = criticised.agent.clone();
    criticised.critique = Some(CritiqueSpec { every: 1, critic, timeout: Millis(1_000) });
    let criticised = || Journal::of(criticised.clone()).taken_over().runs(3_000, Exit::Code(0)).obey();
    let promised = || claiming(ClaimSource::Promise);
    let in_a_worktree = |spec: &mut Spec| {
        spec.git.checkout = Checkout::Worktree { branch: "loop/mend".into(), from: "HEAD".into() };
    };
    let to_its_end = |mut journal: Journal| {
        while journal.state.ended.is_none() {
            journal = journal.obey();
        }
        journal
    };
    vec![
        sample(),
        // Gates: at the baseline, stopped at the time limit, and after a claim.
        Journal::gated([true, false])
            .takes(0)
            .gates_end(&[1, 0])
            .attempts(promised())
            .takes(1)
            .gates()
            .after_ms(60_000)
            .obey()
            .answers(|finished| finished.exit = Exit::Signal(9))
            .gates_end(&[0]),
        Journal::gated([true]).takes(0).gates_end(&[1]).attempts(promised()).takes(1).gates_end(&[0]),
        // Critics: one that ends, one that is stopped.
        criticised()
            .then(Event::CritiqueFinished(Box::new(super::journal::criticised(Exit::Code(0)))))
            .obey(),
        criticised().after_ms(2_000).obey(),
        // A session's turns.
        Journal::in_session().turns(finished(Exit::Unseen)).starts().taken_over().then(Event::SessionLeft),
        // Commits, all that is published, and the loop's own worktree.
        to_its_end(Journal::publishing(Workflow::PrMerge, in_a_worktree).attempts(promised())),
        to_its_end(
            Journal::publishing(Workflow::Push, |_| ())
                .runs(3_000, Exit::Code(0))
                .asks(Ask::Cancel(Urgency::Now)),
        ),
        // Another machine continues, and it comes back.
        Journal::publishing(Workflow::Commit, in_a_worktree)
            .obey()
            .runs(3_000, Exit::Code(0))
            .asks(Ask::Pause(Urgency::AfterIteration))
            .obey()
            .obey()
            .then(left(1))
            .then(moved(2))
            .then(left(2))
            .then(moved(3))
            .resumes()
            .starts(),
        // No progress: another agent continues, or the loop ends.
        Journal::stuck(OnStuck::Change(Box::new(other_agent()))).obey(),
        Journal::ended(End::Stuck),
    ]
}
