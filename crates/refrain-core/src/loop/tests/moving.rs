//! Loops that move between machines: what changes, what is refused meanwhile, and which machine may take one over.

use proptest::prelude::*;
use rstest::rstest;

use super::journal::{Journal, left, moved, oid, runner, spawn_failed, spec, time};
use crate::event::{Arrival, Ask, BlockReason, End, Event, Exit, Urgency, Wait, WaitKind};
use crate::git::{Checkout, Oid, Workflow};
use crate::r#loop::{
    Grant, LeaveReason, Outcome, RemoteLoop, Step, TakeOverRefusal, Takeover, Tenure, take_lease, take_over,
};
use crate::machine::Refusal;
use crate::plan::TaskRef;
use crate::sandbox::SandboxSpec;
use crate::spec::{Secret, Spec};
use crate::view::{self, Alive, StatusWord};

fn in_a_worktree(spec: &mut Spec) {
    spec.git.checkout = Checkout::Worktree { branch: "loop/mend".into(), from: "HEAD".into() };
}

/// A loop in a worktree of its own that was paused after its first iteration.
fn paused(change: impl FnOnce(&mut Spec)) -> Journal {
    let journal = Journal::publishing(Workflow::Commit, |spec| {
        in_a_worktree(spec);
        change(spec);
    });
    let journal = journal.runs(3_000, Exit::Code(0)).asks(Ask::Pause(Urgency::AfterIteration)).obey().obey();
    assert!(journal.state.ended.is_some(), "{:?}", journal.state.phase);
    journal
}

#[test]
fn a_loop_that_left_can_only_be_read() {
    let journal = paused(|_| ()).then(left(1));
    let state = &journal.state;
    let moved = Refusal::Moved { to: "there".into() };
    assert_eq!(state.resume(&Grant::default()), Err(moved.clone()));
    assert_eq!(state.approve(&Grant::default(), None), Err(moved.clone()));
    for ask in [Ask::Steer("x".into()), Ask::Cancel(Urgency::Now), Ask::Pause(Urgency::Now), Ask::Proceed] {
        assert_eq!(state.admits(&ask), Err(moved.clone()), "{ask:?}");
    }
    let status = view::status(state, Alive::default());
    assert_eq!((status.status, status.reason.as_str()), (StatusWord::Moved, "its journal is at there now"));
    assert!(
        status.needs.is_some_and(|needs| needs.starts_with("refrain move mend --from there takes it back"))
    );
}

#[test]
fn a_loop_that_arrived_has_the_paths_and_programs_of_the_machine() {
    let before = paused(|spec| spec.critique = None);
    let (charged, spent, limits) = (before.state.charged, before.state.spent, before.state.limits.clone());
    let journal = before.then(left(1)).then(moved(2));
    let state = &journal.state;
    let paths =
        [&state.spec.project, &state.spec.worktree, &state.spec.working_dir].map(|path| path.as_str());
    assert_eq!(paths, ["/two", "/two/w", "/two/w/a"]);
    assert_eq!(state.spec.agent.program, "/two/agent");
    assert_eq!((state.charged, state.spent, state.limits.clone()), (charged, spent, limits));
    assert_eq!(state.tenure, Tenure { fence: 2, claim: Some(("there".into(), oid(7))), ..Tenure::default() });
    let journal = journal.resumes().starts();
    assert_eq!(journal.state.iteration, 2, "it continues");
}

#[rstest]
#[case::with_that_of_the_machine(Some(vec![5432]), Some(vec![]), Some(vec![]))]
#[case::as_an_older_refrain_recorded_it(Some(vec![5432]), None, Some(vec![5432]))]
#[case::and_had_none_before(None, Some(vec![]), Some(vec![]))]
#[case::and_gets_none(None, None, None)]
fn a_loop_in_a_sandbox_arrives(
    #[case] before: Option<Vec<u16>>,
    #[case] moved_to: Option<Vec<u16>>,
    #[case] after: Option<Vec<u16>>,
) {
    let sandbox =
        |ports: Option<Vec<u16>>| ports.map(|localhost| SandboxSpec { localhost, ..SandboxSpec::default() });
    let Event::LoopMoved(arrival) = moved(2) else { panic!("another event") };
    let arrival = Arrival { sandbox: sandbox(moved_to), ..*arrival };
    let journal = paused(|spec| spec.sandbox = sandbox(before)).then(left(1));
    assert_eq!(journal.then(Event::LoopMoved(Box::new(arrival))).state.spec.sandbox, sandbox(after));
}

#[test]
fn a_loop_of_a_checkout_continues_on_a_branch_of_its_own() {
    let journal = Journal::publishing(Workflow::Commit, |spec| spec.critique = None);
    let journal = journal.runs(3_000, Exit::Code(0)).asks(Ask::Pause(Urgency::AfterIteration)).obey().obey();
    let Event::LoopMoved(arrival) = moved(2) else { panic!("another event") };
    let arrival = Arrival { branch: Some("loop/mend".into()), ..*arrival };
    let state = journal.then(left(1)).then(Event::LoopMoved(Box::new(arrival))).state;
    let from = oid(1).to_string();
    assert_eq!(state.spec.git.checkout, Checkout::Worktree { branch: "loop/mend".into(), from });
    assert_eq!(state.git.base.unwrap().branch.as_deref(), Some("loop/mend"));
}

#[rstest]
#[case::with_the_same_fence(&[left(1), moved(1)])]
#[case::that_did_not_leave(&[moved(2)])]
#[case::twice(&[left(1), left(1)])]
#[case::with_an_older_fence(&[left(1), moved(3), left(1)])]
#[case::and_is_resumed(&[left(1), Event::LoopResumed { limits: Default::default(), approved: None, no_sandbox: false }])]
fn a_loop_cannot_move(#[case] events: &[Event]) {
    let (last, before) = events.split_last().unwrap();
    let journal = before.iter().fold(paused(|_| ()), |journal, event| journal.then(event.clone()));
    let record = journal.record(last.clone());
    assert!(journal.state.clone().apply(&record).is_err());
}

/// A runner drives it under this fence.
fn leased(journal: Journal, fence: u64) -> Journal {
    let event = journal.state.recover_under(runner(1), Some(fence));
    journal.then(event)
}

#[test]
fn a_leased_loop_is_taken_over_without_a_departure() {
    let journal = leased(Journal::of(spec()), 1).starts().spawns();
    let before = journal.state.clone();
    let journal = leased(journal.then(moved(4)), 4);
    let state = &journal.state;
    assert_eq!((state.tenure.fence, state.tenure.is_leased), (4, true));
    assert_eq!((state.iteration, state.attempts.len()), (before.iteration, 1), "the attempt was refunded");
    assert_eq!(state.attempts[0].outcome, Outcome::Lost);
    let older = journal.record(journal.state.recover_under(runner(1), Some(3)));
    assert!(journal.state.clone().apply(&older).is_err());
}

#[test]
fn a_fault_of_one_machine_is_not_assumed_of_the_next() {
    let journal = leased(Journal::of(spec()), 1).starts().then(spawn_failed());
    let missing = Step::Finish(End::Blocked { why: BlockReason::AgentMissing });
    assert_eq!(journal.next(), missing);
    let journal = leased(journal, 2);
    assert!(matches!(journal.next(), Step::Start(_)), "{:?}", journal.next());
    // It has been elsewhere often enough.
    let journal = leased(journal.obey().then(spawn_failed()), 3).obey().then(spawn_failed());
    assert_eq!(leased(journal, 4).next(), Step::Finish(End::Blocked { why: BlockReason::Refunds }));
    // At home nothing changes by itself.
    let journal = Journal::running().starts().then(spawn_failed()).taken_over();
    assert_eq!(journal.next(), missing);
}

#[rstest]
#[case::that_is_not_at_the_remote(None, 1, Ok(None))]
#[case::with_a_higher_fence(Some((2, 5)), 3, Ok(Some(Takeover::Claim { fence: 3 })))]
#[case::that_another_has(Some((3, 5)), 3, Err(TakeOverRefusal::Fenced { there: 3, own: 3 }))]
#[case::that_a_later_one_has(Some((4, 5)), 3, Err(TakeOverRefusal::Fenced { there: 4, own: 3 }))]
#[case::again_after_a_crash(Some((3, 9)), 3, Ok(Some(Takeover::Continue { fence: 3 })))]
fn a_lease_is_taken(
    #[case] there: Option<(u64, u32)>,
    #[case] fence: u64,
    #[case] expected: Result<Option<Takeover>, TakeOverRefusal>,
) {
    let there =
        there.map(|(fence, commit)| RemoteLoop { commit: oid(commit), fence, holder: Some("x".into()) });
    assert_eq!(take_lease(there.as_ref(), fence, &[oid(9)]), expected);
}

#[test]
fn a_loop_that_cannot_move_says_why() {
    let text = |journal: Journal| journal.state.check_movable().unwrap_err().to_string();
    assert!(paused(|_| ()).state.check_movable().is_ok());
    let pushing = Journal::publishing(Workflow::Pr, |_| ());
    let pushing = pushing.runs(3_000, Exit::Code(0)).asks(Ask::Pause(Urgency::AfterIteration)).obey().obey();
    assert!(text(pushing).contains("it pushes the branch that you have checked out"));
    let secret = paused(|spec| drop(spec.agent.env.insert("KEY".into(), Secret::new("word".into()))));
    let refused = text(secret);
    assert!(refused.contains("KEY") && !refused.contains("word"), "{refused}");
    let of_gates =
        paused(|spec| drop(spec.gate_env.variables.insert("PATH".into(), Some(Secret::new("x".into())))));
    assert!(text(of_gates).contains("PATH"));
    let passed_on = paused(|spec| drop(spec.gate_env.variables.insert("LANG".into(), None)));
    assert!(passed_on.state.check_movable().is_ok());
    assert_eq!(text(paused(|_| ()).asks(Ask::Cancel(Urgency::Now))), "it is cancelled");
    let mut begun = spec();
    in_a_worktree(&mut begun);
    assert!(Journal::of(begun).state.check_movable().is_ok(), "its worktree is made elsewhere");
    assert!(text(Journal::of(spec())).contains("it has not begun"));
    let task = |spec: &mut Spec| {
        spec.task = Some(TaskRef {
            plan: "x".parse().unwrap(),
            tag: "x".into(),
            id: "1".parse().unwrap(),
            title: "One".into(),
            round: 1,
        });
    };
    assert!(
        paused(task).state.check_movable().is_ok(),
        "a task that is on a fleet has a worktree of its own"
    );
    let mut of_pool = spec();
    task(&mut of_pool);
    assert!(text(Journal::of(of_pool)).contains("it is a task of a plan"));
}

#[rstest]
#[case::a_fault_of_the_machine(
    Step::Finish(End::Blocked { why: BlockReason::AgentMissing }), false,
    Some(LeaveReason::Unable(BlockReason::AgentMissing))
)]
#[case::a_question_for_a_person(Step::Finish(End::Blocked { why: BlockReason::Churn }), true, None)]
#[case::the_next_iteration(Step::BeginIteration { iteration: 2 }, false, None)]
#[case::an_iteration_while_it_is_drained(Step::BeginIteration { iteration: 2 }, true, Some(LeaveReason::Drained))]
#[case::a_short_wait(Step::Await { until: Some(time(120_000)) }, false, None)]
#[case::a_long_wait(Step::Await { until: Some(time(120_001)) }, false, Some(LeaveReason::Rests(time(120_001))))]
#[case::a_wait_while_it_is_drained(Step::Await { until: Some(time(1)) }, true, Some(LeaveReason::Drained))]
#[case::a_wait_for_a_request(Step::Await { until: None }, true, None)]
fn a_lease_leaves_steps_that_are_not_for_its_machine(
    #[case] step: Step,
    #[case] is_drained: bool,
    #[case] expected: Option<LeaveReason>,
) {
    let mut state = paused(|_| ()).state;
    state.wait = Some(Wait { kind: WaitKind::Pace, until: time(120_000) });
    assert_eq!(state.leaves(step, is_drained, time(0)), expected);
}

/// Its tenure by this machine's journal: with this fence, gone to that remote or not, and claimed by this commit there.
fn tenure(fence: u64, to: Option<&str>, claim: Option<u32>) -> Tenure {
    let Event::LoopLeft(departure) = left(fence) else { panic!("another event") };
    let departure = to.map(|to| Box::new(crate::event::Departure { to: to.into(), ..*departure }));
    Tenure { fence, is_leased: false, departure, claim: claim.map(|claim| ("there".into(), oid(claim))) }
}

/// The reference: its commit, its fence, and its holder if it has one.
fn there(commit: u32, fence: u64, holder: Option<&str>) -> Option<RemoteLoop> {
    Some(RemoteLoop { commit: oid(commit), fence, holder: holder.map(str::to_owned) })
}

#[rstest]
#[case::first(None, there(1, 1, None), Ok(Takeover::Claim { fence: 2 }))]
#[case::of_another_machine(None, there(2, 2, Some("two")), Err(TakeOverRefusal::Claimed("two".into())))]
#[case::of_an_earlier_call(None, there(9, 2, Some("one")), Ok(Takeover::Continue { fence: 2 }))]
#[case::not_there(None, None, Err(TakeOverRefusal::Missing))]
#[case::here(Some(tenure(1, None, None)), there(1, 1, None), Err(TakeOverRefusal::Here))]
#[case::back(Some(tenure(1, Some("there"), None)), there(1, 1, None), Ok(Takeover::Claim { fence: 2 }))]
#[case::back_from_two(Some(tenure(1, Some("there"), None)), there(3, 2, None), Ok(Takeover::Claim { fence: 3 }))]
#[case::taken_by_two(
    Some(tenure(1, Some("there"), None)),
    there(2, 2, Some("two")),
    Err(TakeOverRefusal::Claimed("two".into()))
)]
#[case::not_arrived(Some(tenure(1, Some("there"), None)), None, Ok(Takeover::FinishDeparture))]
#[case::not_arrived_again(
    Some(tenure(3, Some("there"), Some(5))),
    there(5, 3, Some("one")),
    Ok(Takeover::FinishDeparture)
)]
#[case::not_arrived_elsewhere(Some(tenure(1, Some("elsewhere"), None)), None, Err(TakeOverRefusal::Missing))]
#[case::of_an_older_remote(
    Some(tenure(3, Some("elsewhere"), Some(5))),
    there(1, 1, None),
    Err(TakeOverRefusal::Stale("elsewhere".into()))
)]
#[case::gone_on_from_elsewhere(
    Some(tenure(1, Some("elsewhere"), None)),
    there(6, 2, None),
    Ok(Takeover::Claim { fence: 3 })
)]
fn a_loop_is_taken_over(
    #[case] here: Option<Tenure>,
    #[case] found: Option<RemoteLoop>,
    #[case] expected: Result<Takeover, TakeOverRefusal>,
) {
    assert_eq!(take_over(here.as_ref(), "there", found.as_ref(), &[oid(9)]), expected);
}

/// A remote, machines that may be killed between any two steps, and pushes that may arrive late or never.
struct World {
    reference: Option<RemoteLoop>,
    /// Of each machine: what its journal says, if it has one, and its claims.
    machines: [(Option<Tenure>, Vec<Oid>); 3],
    pushes: Vec<(Option<Oid>, RemoteLoop)>,
    made: u32,
}

impl World {
    fn new() -> Self {
        let machines = [(Some(Tenure::default()), vec![]), (None, vec![]), (None, vec![])];
        Self { reference: None, machines, pushes: vec![], made: 100 }
    }

    fn push(&mut self, expected: Option<Oid>, fence: u64, holder: Option<usize>) -> Oid {
        self.made += 1;
        let holder = holder.map(|holder| holder.to_string());
        self.pushes.push((expected, RemoteLoop { commit: oid(self.made), fence, holder }));
        oid(self.made)
    }

    fn leave(&mut self, machine: usize) {
        let Some(tenure) = self.machines[machine].0.as_mut().filter(|tenure| tenure.departure.is_none())
        else {
            return;
        };
        let Event::LoopLeft(departure) = left(tenure.fence) else { panic!("another event") };
        tenure.departure = Some(departure);
        let (expected, fence) = (tenure.before("there").cloned(), tenure.fence);
        self.push(expected, fence, None);
    }

    /// One step of taking the loop over: what `move --from` does until it pushes, or to its end.
    fn take(&mut self, machine: usize) {
        let (tenure, claims) = &self.machines[machine];
        let reference = self.reference.clone();
        let commit = reference.as_ref().map(|there| there.commit.clone());
        match take_over(tenure.as_ref(), "there", reference.as_ref(), claims) {
            Ok(Takeover::FinishDeparture) => {
                let fence = tenure.as_ref().unwrap().fence;
                self.push(commit, fence, None);
            }
            Ok(Takeover::Claim { fence }) => {
                let claim = self.push(commit, fence, Some(machine));
                self.machines[machine].1.push(claim);
            }
            Ok(Takeover::Continue { fence }) => {
                let claim = commit.map(|commit| ("there".to_owned(), commit));
                self.machines[machine] = (Some(Tenure { fence, claim, ..Tenure::default() }), vec![]);
            }
            Err(_) => {}
        }
    }

    fn deliver(&mut self, push: usize) {
        let (expected, new) = self.pushes.remove(push);
        if self.reference.as_ref().map(|there| &there.commit) == expected.as_ref() {
            self.reference = Some(new);
        }
    }

    /// The machines that can continue the loop.
    fn holders(&self) -> Vec<usize> {
        let has = |of: &usize| self.machines[*of].0.as_ref().is_some_and(|tenure| tenure.departure.is_none());
        (0..self.machines.len()).filter(has).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn at_every_moment_one_machine_at_most_has_the_loop(steps in proptest::collection::vec(any::<u8>(), 1..120)) {
        let mut world = World::new();
        for step in steps {
            let (kind, which) = (step % 8, usize::from(step / 8));
            match (kind, world.pushes.len()) {
                (0 | 1, _) => world.leave(which % 3),
                (2..=4, _) => world.take(which % 3),
                (5, pushes) if pushes > 0 => drop(world.pushes.remove(which % pushes)),
                (_, pushes) if pushes > 0 => world.deliver(which % pushes),
                _ => {}
            }
            prop_assert!(world.holders().len() <= 1, "{:?}", world.machines);
        }
        // It is never lost: one of them can have it again.
        for machine in (0..3).cycle().take(9) {
            if world.holders().is_empty() {
                world.take(machine);
                while !world.pushes.is_empty() {
                    world.deliver(0);
                }
                world.take(machine);
            }
        }
        prop_assert_eq!(world.holders().len(), 1, "{:?}", world.machines);
    }
}
