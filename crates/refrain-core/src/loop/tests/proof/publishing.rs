//! What a loop publishes after its commits: in which order, what a claim waits for, and when a person is needed.

use rstest::rstest;

use crate::event::{Ask, BlockReason, ClaimSource, End, Event, Exit, Urgency, WaitKind};
use crate::git::{
    Base, ChecksVerdict, CommitReport, CommitResult, Conflict, ConflictKind, Effect, Oid, PublishResult,
    Refusal, RepoPath, SkipReason, Workflow,
};
use crate::r#loop::tests::journal::{
    Journal, checked, claiming, commit_settled, finished, gates, oid, published, well,
};
use crate::r#loop::{Grant, MAX_CONFLICTS, Objection, Step};
use crate::{AttemptId, prompt, view};

const PROMISE: ClaimSource = ClaimSource::Promise;
const DONE: Step = Step::Finish(End::Completed { claim: PROMISE });

/// An iteration that is committed, and claims nothing.
fn worked(workflow: Workflow) -> Journal {
    Journal::publishing(workflow, |_| ()).obey().runs(3_000, Exit::Code(0)).obey()
}

fn claimed(workflow: Workflow) -> Journal {
    Journal::publishing(workflow, |_| ()).obey().attempts(claiming(PROMISE)).obey()
}

/// The effects that come next, one after the other, if all goes well.
fn effects(mut journal: Journal) -> (Vec<Effect>, Step) {
    let mut effects = Vec::new();
    while let Step::Intend(effect) | Step::Publish(effect) = journal.next() {
        effects.push(effect);
        journal = journal.publishes(effect, well(effect));
    }
    (effects, journal.next())
}

fn looked_at(head: Oid) -> Event {
    Event::BaseTaken(Box::new(Base { head: Some(head), branch: Some("main".into()), ..Base::default() }))
}

fn later() -> PublishResult {
    PublishResult::Later { said: "no route to host".into(), until: None }
}

fn refused(why: Refusal) -> PublishResult {
    PublishResult::Refused { why, said: "no".into() }
}

fn conflict() -> PublishResult {
    let path = RepoPath::from_bytes(b"src/a.rs");
    PublishResult::Conflict { theirs: oid(50), paths: vec![Conflict { path, kind: ConflictKind::Content }] }
}

#[rstest]
#[case::push(Workflow::Push, &[Effect::Push], &[Effect::Push])]
#[case::pull_request(
    Workflow::Pr,
    &[Effect::Push, Effect::Open],
    &[Effect::Push, Effect::Open, Effect::Ready, Effect::Look]
)]
#[case::merged(
    Workflow::PrMerge,
    &[Effect::Push, Effect::Open],
    &[Effect::Push, Effect::Open, Effect::Ready, Effect::Look, Effect::Merge, Effect::Return]
)]
fn each_workflow_publishes_its_own_effects(
    #[case] workflow: Workflow,
    #[case] behind: &[Effect],
    #[case] at_the_end: &[Effect],
) {
    assert_eq!(effects(worked(workflow)), (behind.to_vec(), Step::BeginIteration { iteration: 2 }));
    assert_eq!(effects(claimed(workflow)), (at_the_end.to_vec(), DONE));
}

#[test]
fn an_intent_is_recorded_once_before_each_effect() {
    let journal = worked(Workflow::Push);
    assert_eq!(journal.next(), Step::Intend(Effect::Push));
    journal.refuses(published(Effect::Push, well(Effect::Push)));
    journal.refuses(Event::PublishStarted { effect: Effect::Open });
    let journal = journal.then(Event::PublishStarted { effect: Effect::Push });
    assert_eq!(journal.next(), Step::Publish(Effect::Push));
    journal.refuses(Event::PublishStarted { effect: Effect::Push });
    journal.refuses(published(Effect::Push, well(Effect::Open)));
    // The next runner checks whether it was done.
    assert_eq!(journal.taken_over().next(), Step::Intend(Effect::Push));
}

#[test]
fn a_loop_without_commits_publishes_nothing() {
    let nothing = CommitReport::skipped(1, SkipReason::Nothing, Some(oid(0)));
    let journal = Journal::publishing(Workflow::Pr, |_| ()).obey().attempts(claiming(PROMISE));
    assert_eq!(journal.then(Event::CommitSettled(Box::new(nothing))).next(), DONE);
}

#[test]
fn a_failed_effect_is_retried_after_the_next_iteration() {
    for result in [later(), refused(Refusal::Permission)] {
        let journal = worked(Workflow::Push).publishes(Effect::Push, result);
        assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 });
        let journal = journal.obey().runs(3_000, Exit::Code(0)).obey();
        assert_eq!(effects(journal).0, [Effect::Push]);
    }
}

#[test]
fn a_claim_waits_for_temporary_push_errors_but_not_for_ever() {
    let mut journal = claimed(Workflow::Push);
    let mut waits = 0;
    while journal.next() == Step::Intend(Effect::Push) {
        journal = journal.publishes(Effect::Push, later());
        let Step::Wait(wait) = journal.next() else { break };
        assert_eq!(wait.kind, WaitKind::Remote);
        journal = journal.obey().after_ms(600_000);
        waits += 1;
    }
    assert!(waits > 10, "{waits}");
    assert_eq!(journal.next(), Step::Finish(End::Blocked { why: BlockReason::Publish }));
    let shown = view::status(&journal.obey().state, Default::default());
    assert_eq!(shown.reason, "it is done, but cannot be published: no route to host");
    assert_eq!(shown.needs.as_deref(), Some("see what keeps it, then refrain resume mend"));
}

#[test]
fn a_claim_that_needs_a_person_blocks_and_continues_where_it_was() {
    let journal = claimed(Workflow::Pr).publishes(Effect::Push, refused(Refusal::Protected)).obey();
    let blocked = End::Blocked { why: BlockReason::Publish };
    assert_eq!(journal.state.ended.map(|ended| ended.end), Some(blocked));
    let resumed = journal.state.resume(&Grant::default()).unwrap().unwrap();
    let journal = journal.then(resumed).taken_over();
    assert_eq!(journal.next(), Step::TakeBase, "a person may have worked");
    let (effects, end) = effects(journal.then(looked_at(oid(1))));
    assert_eq!((effects.len(), end), (4, DONE), "{effects:?}");
}

#[test]
fn a_claim_that_is_not_committed_does_not_complete() {
    let locked = CommitReport::skipped(1, SkipReason::IndexLocked, Some(oid(0)));
    let journal = Journal::publishing(Workflow::Push, |_| ()).obey().attempts(claiming(PROMISE));
    let journal = journal.then(Event::CommitSettled(Box::new(locked))).obey();
    assert_eq!(journal.state.ended.map(|ended| ended.end), Some(End::Blocked { why: BlockReason::Publish }));
    let resumed = journal.state.resume(&Grant::default()).unwrap().unwrap();
    assert_eq!(journal.then(resumed).taken_over().next(), Step::Commit { iteration: 1 });
}

#[test]
fn work_rebased_onto_the_work_of_others_is_proven_again() {
    let rebased = PublishResult::Rebased { head: oid(61), tree: oid(1061), commits: vec![oid(61)] };
    let journal = claimed(Workflow::Push).publishes(Effect::Push, rebased.clone());
    assert_eq!(journal.state.git.commits, [oid(61)]);
    assert_eq!(effects(journal), (vec![Effect::Push], DONE), "no gate decides");

    let gated = |spec: &mut crate::Spec| {
        spec.gates = gates([true]);
        spec.git.candidates = true;
    };
    let journal = Journal::publishing(Workflow::Push, gated).takes(0).gates_end(&[0]);
    let journal = journal.obey().attempts(claiming(PROMISE)).takes(1001).gates_end(&[0]).takes(1001);
    let journal = journal.obey().publishes(Effect::Push, rebased);
    assert_eq!(journal.next(), Step::TakeCandidate);
    let red = journal.clone().takes(1061).gates_end(&[1]);
    assert_eq!(red.next(), Step::BeginIteration { iteration: 2 }, "nothing unproven is pushed");
    let green = journal.takes(1061).gates_end(&[0]).takes(1061);
    assert_eq!(effects(green), (vec![Effect::Push], DONE));
}

#[test]
fn a_commit_changed_by_a_hook_is_proven_before_it_is_pushed() {
    let gated = |spec: &mut crate::Spec| {
        spec.gates = gates([true]);
        spec.git.candidates = true;
    };
    let journal = Journal::publishing(Workflow::Push, gated).takes(0).gates_end(&[0]);
    let journal = journal.obey().runs(3_000, Exit::Code(0)).takes(1001).gates_end(&[0]).takes(1001);
    let Event::CommitSettled(mut report) = commit_settled(1) else { panic!("it is one") };
    report.result = CommitResult::Made { commit: oid(1), tree: oid(2001) };
    let journal = journal.then(Event::CommitSettled(report));
    assert_eq!(journal.next(), Step::TakeCandidate, "there is no claim, but it is published");
    let red = journal.clone().takes(2001).gates_end(&[1]);
    assert_eq!(red.next(), Step::BeginIteration { iteration: 2 });
    let green = journal.takes(2001).gates_end(&[0]).takes(2001);
    assert_eq!(effects(green), (vec![Effect::Push], Step::BeginIteration { iteration: 2 }));
}

#[test]
fn a_remote_that_never_rests_gets_nothing_that_no_gate_has_seen() {
    let gated = |spec: &mut crate::Spec| {
        spec.gates = gates([true]);
        spec.git.candidates = true;
    };
    let journal = Journal::publishing(Workflow::Push, gated).takes(0).gates_end(&[0]);
    let journal = journal.obey().attempts(claiming(PROMISE)).takes(1001).gates_end(&[0]).takes(1001);
    let mut journal = journal.obey();
    let mut rebases = 0;
    while journal.next() == Step::Intend(Effect::Push) {
        rebases += 1;
        let (head, tree) = (60 + rebases, 1060 + rebases);
        let rebased = PublishResult::Rebased { head: oid(head), tree: oid(tree), commits: vec![oid(head)] };
        journal = journal.publishes(Effect::Push, rebased);
        if journal.next() == Step::TakeCandidate {
            journal = journal.takes(tree).gates_end(&[0]).takes(tree);
        }
    }
    assert_eq!(journal.next(), Step::Finish(End::Blocked { why: BlockReason::Publish }));
    let journal = journal.obey();
    let resumed = journal.state.resume(&Grant::default()).unwrap().unwrap();
    let journal = journal.then(resumed).taken_over().then(looked_at(oid(60 + rebases)));
    assert_eq!(journal.next(), Step::TakeCandidate, "the last rebase is still to be proven");
    let tree = 1060 + rebases;
    assert_eq!(effects(journal.takes(tree).gates_end(&[0]).takes(tree)), (vec![Effect::Push], DONE));
}

#[test]
fn a_conflict_goes_to_the_agent_and_at_last_to_a_person() {
    let mut journal = claimed(Workflow::Push);
    for _ in 0..MAX_CONFLICTS {
        journal = journal.publishes(Effect::Push, conflict());
        assert!(matches!(journal.state.git.published.objection, Some((_, Objection::Conflict { .. }))));
        journal = journal.obey();
        let told = prompt::assemble(&journal.state, Default::default());
        assert!(told.contains("CONFLICT: others pushed"), "{told}");
        assert!(told.contains("src/a.rs: changed on both sides"), "{told}");
        let iteration = journal.state.iteration;
        journal = journal.attempts(claiming(PROMISE)).then(commit_settled(iteration));
    }
    let journal = journal.publishes(Effect::Push, conflict());
    assert_eq!(journal.next(), Step::Finish(End::Blocked { why: BlockReason::Publish }));
}

#[test]
fn checks_that_fail_refuse_the_claim() {
    let journal = claimed(Workflow::Pr);
    let journal = [Effect::Push, Effect::Open, Effect::Ready]
        .into_iter()
        .fold(journal, |journal, effect| journal.publishes(effect, well(effect)));
    let red = journal.publishes(Effect::Look, checked(ChecksVerdict::Red)).obey();
    let id = AttemptId { iteration: 1, attempt: 1 };
    let printed = [(prompt::Quote::Outside(id), "assertion failed: 1 == 2".to_owned())];
    let told = prompt::assemble(&red.state, prompt::QuotedLogs(&printed));
    assert_eq!(red.state.progress.stuck.count(), 1, "what a check says counts as what a gate says");
    assert!(told.contains("these checks of commit 0000000000 failed:\n- build"), "{told}");
    assert!(told.contains("assertion failed: 1 == 2"), "{told}");
    let again = red.attempts(claiming(PROMISE)).then(commit_settled(2));
    assert_eq!(effects(again), (vec![Effect::Push, Effect::Ready, Effect::Look], DONE));
}

#[test]
fn checks_are_looked_at_again_until_they_are_over_or_should_be() {
    let journal = claimed(Workflow::Pr);
    let journal = [Effect::Push, Effect::Open, Effect::Ready]
        .into_iter()
        .fold(journal, |journal, effect| journal.publishes(effect, well(effect)));
    for (verdict, looks) in [(ChecksVerdict::NotStarted, 5..20), (ChecksVerdict::Pending, 100..200)] {
        let mut journal = journal.clone();
        let mut count = 0;
        while journal.next() == Step::Publish(Effect::Look) {
            journal = journal.publishes(Effect::Look, checked(verdict));
            count += 1;
            let Step::Wait(wait) = journal.next() else { break };
            assert_eq!(wait.kind, WaitKind::Checks);
            journal = journal.obey().after_ms(60_000);
        }
        assert!(looks.contains(&count), "{verdict:?}: {count}");
        assert_eq!(journal.next(), Step::Finish(End::Blocked { why: BlockReason::Publish }), "{verdict:?}");
    }
    let journal = journal.publishes(Effect::Look, checked(ChecksVerdict::Pending)).obey();
    let shown = view::status(&journal.state, view::Alive::DRIVEN);
    assert_eq!(shown.reason, "waits for the checks of pull request 7: 1 of 2 are over");
    let paused = journal.clone().asks(Ask::Pause(Urgency::AfterIteration));
    assert_eq!(paused.next(), Step::Finish(End::Paused), "a pause does not wait for an hour");
    assert_eq!(journal.asks(Ask::Proceed).next(), Step::Publish(Effect::Look), "resume --now looks at once");
}

#[test]
fn a_pause_after_the_iteration_waits_for_a_running_push() {
    let journal = worked(Workflow::Push).then(Event::PublishStarted { effect: Effect::Push });
    assert_eq!(journal.clone().asks(Ask::Pause(Urgency::AfterIteration)).next(), Step::Publish(Effect::Push));
    assert_eq!(journal.clone().asks(Ask::Pause(Urgency::Now)).next(), Step::Finish(End::Paused));
    let cancelled = journal.asks(Ask::Cancel(Urgency::Now)).obey();
    assert_eq!(cancelled.state.ended.map(|ended| ended.end), Some(End::Cancelled));
}

#[test]
fn a_loop_that_only_commits_publishes_nothing() {
    let journal = worked(Workflow::Commit);
    assert_eq!(effects(journal), (vec![], Step::BeginIteration { iteration: 2 }));
    let journal = Journal::running().obey().attempts(finished(Exit::Code(0)));
    journal.refuses(Event::PublishStarted { effect: Effect::Push });
}
