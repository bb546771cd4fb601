//! What a loop does with its repository: the base before the first iteration, a commit after each charged one, its own
//! worktree given back at the end.

use crate::event::{Ask, AttemptFinished, BlockReason, ClaimSource, End, Event, Exit, Urgency};
use crate::git::{
    Base, Checkout, CommitReport, Dirty, ExposedSecret, LeftOutReason, OmittedPath, RepoPath, SkipReason,
    Workflow,
};
use crate::r#loop::tests::journal::{
    Journal, asked, base_taken, claiming, commit_settled, finished, gates, oid, spec,
};
use crate::r#loop::{ChildId, Grant, Phase, Step};
use crate::spec::{ProtectSpec, Spec};
use crate::view::{self, Alive};

fn apart() -> Journal {
    let mut spec = spec();
    spec.git.checkout = Checkout::Worktree { branch: "loop/mend".into(), from: "HEAD".into() };
    Journal::of(spec).taken_over()
}

/// An iteration that is over, and to be committed.
fn worked() -> Journal {
    Journal::committing().obey().runs(3_000, Exit::Code(0))
}

#[test]
fn the_base_is_taken_once_before_the_first_iteration() {
    let journal = Journal::committing();
    assert_eq!(journal.next(), Step::TakeBase);
    journal.refuses(Event::IterationBegun { iteration: 1, work: None });
    let journal = journal.obey();
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 1 });
    journal.refuses(base_taken());
    assert_eq!(Journal::running().next(), Step::BeginIteration { iteration: 1 });
    Journal::running().refuses(base_taken());
}

#[test]
fn a_repository_that_cannot_be_used_needs_a_person_and_is_asked_again_after_that() {
    let refused = |error: &str| Journal::committing().then(Event::BaseRefused { error: error.into() }).obey();
    for (error, needs) in [
        ("fatal: no", "repair the repository, then refrain resume mend"),
        ("error: unable to write file: No space left on device", "make room, then refrain resume mend"),
        ("sha1 file 'index.lock' write error. Out of diskspace", "make room, then refrain resume mend"),
        (
            "[worktrees] setup failed: false: exit code 1",
            "make that command succeed, then refrain resume mend, or correct [worktrees] setup and start the loop anew",
        ),
    ] {
        let status = view::status(&refused(error).state, Alive::NO_RUNNER);
        assert_eq!(status.needs.as_deref(), Some(needs), "{error}");
    }
    let reason = view::status(&refused("[worktrees] setup failed: false").state, Alive::NO_RUNNER).reason;
    assert!(reason.contains("[worktrees]") && !reason.contains("git"), "{reason}");
    let journal = refused("fatal: no");
    let blocked = End::Blocked { why: BlockReason::Repository };
    assert_eq!(journal.state.ended.map(|ended| ended.end), Some(blocked));
    let resumed = journal.state.resume(&Grant::default()).unwrap().unwrap();
    assert_eq!(journal.then(resumed).taken_over().next(), Step::TakeBase);
}

#[test]
fn an_iteration_is_committed_before_the_next_begins() {
    let journal = worked();
    assert_eq!(journal.next(), Step::Commit { iteration: 1 });
    journal.refuses(Event::IterationBegun { iteration: 2, work: None });
    journal.refuses(commit_settled(2));
    let journal = journal.obey();
    assert_eq!(journal.state.git.commits, [oid(1)]);
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 });
    journal.refuses(commit_settled(1));
}

#[test]
fn a_commit_that_is_skipped_ends_nothing() {
    let journal = worked().obey().runs(3_000, Exit::Code(0)).obey().runs(3_000, Exit::Code(1)).obey();
    assert_eq!(journal.state.git.commits, [oid(1), oid(2)], "the third changed nothing");
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 4 });
}

#[test]
fn a_refunded_attempt_is_not_committed() {
    let journal = Journal::committing().obey().spawns().ends(finished(Exit::Lost));
    assert!(matches!(journal.next(), Step::Start(ChildId::Attempt(_))));
}

#[test]
fn a_commit_waits_for_processes_that_may_still_write() {
    let mut left = finished(Exit::Code(0));
    left.left = true;
    let journal = Journal::committing().obey().spawns().after_ms(3_000).ends(left);
    assert_eq!(journal.next(), Step::Await { until: None });
    journal.refuses(commit_settled(1));
    let journal = journal.then(Event::AttemptSwept { killed: 1, survivors: vec![], names: vec![] });
    assert_eq!(journal.next(), Step::Commit { iteration: 1 });
}

#[test]
fn every_end_of_a_loop_follows_its_commit() {
    for (ask, end) in [(Ask::Pause as fn(Urgency) -> Ask, End::Paused), (Ask::Cancel, End::Cancelled)] {
        let journal = worked().then(asked(ask(Urgency::AfterIteration)));
        assert_eq!(journal.next(), Step::Commit { iteration: 1 });
        assert_eq!(journal.obey().next(), Step::Finish(end));
    }
    let claimed = Journal::committing().obey().spawns().after_ms(3_000).ends(claiming(ClaimSource::Promise));
    assert_eq!(claimed.next(), Step::Commit { iteration: 1 });
    claimed.refuses(Event::LoopEnded(End::Completed { claim: ClaimSource::Promise }));
    assert_eq!(claimed.obey().next(), Step::Finish(End::Completed { claim: ClaimSource::Promise }));
}

#[test]
fn an_immediate_pause_postpones_the_commit() {
    let paused = worked().then(asked(Ask::Pause(Urgency::Now))).obey();
    assert_eq!(paused.state.ended.map(|ended| ended.end), Some(End::Paused));
    let resumed = paused.state.resume(&Grant::default()).unwrap().unwrap();
    assert_eq!(paused.then(resumed).taken_over().next(), Step::Commit { iteration: 1 });

    let cancelled = worked().then(asked(Ask::Cancel(Urgency::Now)));
    assert_eq!(cancelled.next(), Step::Finish(End::Cancelled));
}

#[test]
fn a_worktree_is_given_back_before_the_loop_ends_for_good() {
    let begun = apart().obey();
    let paused = begun.clone().then(asked(Ask::Pause(Urgency::AfterIteration))).obey();
    assert_eq!(paused.next(), Step::Rest, "resume needs it");
    for journal in [begun, paused] {
        let cancelled = journal.then(asked(Ask::Cancel(Urgency::AfterIteration)));
        cancelled.refuses(Event::LoopEnded(End::Cancelled));
        assert_eq!(cancelled.next(), Step::ReleaseWorktree);
        let released = cancelled.obey();
        released.refuses(Event::WorktreeReleased { kept: None, branch_removed: false });
        assert_eq!(released.next(), Step::Finish(End::Cancelled));
    }
    let claimed = apart().obey().spawns().after_ms(3_000).ends(claiming(ClaimSource::Promise));
    assert_eq!(claimed.next(), Step::ReleaseWorktree);
    assert_eq!(claimed.obey().next(), Step::Finish(End::Completed { claim: ClaimSource::Promise }));
    apart().obey().refuses(Event::WorktreeReleased { kept: None, branch_removed: false });
}

#[test]
fn a_worktree_is_released_only_after_its_last_process_is_swept() {
    let left = AttemptFinished { left: true, ..claiming(ClaimSource::Promise) };
    let journal = apart().obey().spawns().after_ms(3_000).ends(left);
    assert_eq!(journal.next(), Step::Await { until: None });
    let journal = journal.then(Event::AttemptSwept { killed: 1, survivors: vec![], names: vec![] });
    assert_eq!(journal.next(), Step::ReleaseWorktree);
}

#[test]
fn a_worktree_that_was_never_made_is_not_given_back() {
    let cancelled = apart().then(asked(Ask::Cancel(Urgency::AfterIteration)));
    assert_eq!(cancelled.next(), Step::Finish(End::Cancelled));
}

#[test]
fn a_loop_without_git_knows_nothing_of_it() {
    assert_eq!(spec().git.workflow, Workflow::None);
    let journal = Journal::running().runs(3_000, Exit::Code(0));
    assert!(matches!(journal.state.phase, Phase::Idle { uncommitted: false, .. }));
}

#[test]
fn changes_made_while_a_loop_is_stopped_are_not_its_own() {
    let paused = worked().obey().then(asked(Ask::Pause(Urgency::AfterIteration))).obey();
    let resumed = paused.state.resume(&Grant::default()).unwrap().unwrap();
    let journal = paused.then(resumed).taken_over();
    assert_eq!(journal.next(), Step::TakeBase);
    journal.refuses(Event::IterationBegun { iteration: 2, work: None });
    let journal = journal.obey();
    assert_eq!(journal.state.git.base.as_ref().unwrap().branch.as_deref(), Some("main"));
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 2 });

    // Uncommitted work is still its own; a person's part cannot be told from it.
    let paused = worked().then(asked(Ask::Pause(Urgency::Now))).obey();
    let resumed = paused.state.resume(&Grant::default()).unwrap().unwrap();
    assert_eq!(paused.then(resumed).taken_over().next(), Step::Commit { iteration: 1 });
}

fn resumed(journal: Journal) -> Journal {
    let resumed = journal.state.resume(&Grant::default()).unwrap().unwrap();
    journal.then(resumed).taken_over()
}

fn base(head: u32, dirty: &[u8]) -> Event {
    let dirty = vec![Dirty { path: RepoPath::from_bytes(dirty), stamp: None }];
    Event::BaseTaken(Box::new(Base {
        head: Some(oid(head)),
        branch: Some("other".into()),
        dirty,
        ..Base::default()
    }))
}

#[test]
fn work_a_loop_could_not_commit_stays_its_own_when_the_base_is_retaken() {
    let skipped = CommitReport::skipped(1, SkipReason::NoIdentity, Some(oid(0)));
    let journal = worked().then(Event::CommitSettled(Box::new(skipped)));
    let journal = resumed(journal.then(asked(Ask::Pause(Urgency::AfterIteration))).obey());
    assert_eq!(journal.next(), Step::TakeBase);
    let journal = journal.then(base(7, b"by whom?"));
    let git = &journal.state.git;
    assert_eq!(git.head, Some(oid(7)));
    assert_eq!(git.base, Some(Base { head: Some(oid(7)), branch: Some("main".into()), ..Base::default() }));

    // If all was committed, later changes are a person's.
    let journal = resumed(worked().obey().then(asked(Ask::Pause(Urgency::AfterIteration))).obey());
    let journal = journal.then(base(7, b"a person's"));
    assert_eq!(journal.state.git.base.as_ref().unwrap().dirty.len(), 1);

    // Before there was anything, too.
    let journal = resumed(Journal::committing().obey().then(asked(Ask::Pause(Urgency::Now))).obey());
    assert_eq!(journal.next(), Step::TakeBase);
    assert_eq!(journal.then(base(7, b"a person's")).state.git.base.unwrap().dirty.len(), 1);
}

#[test]
fn work_done_while_no_runner_watched_is_marked_as_mixed() {
    let interrupted = Journal::committing().obey().spawns();
    let journal = interrupted.taken_over().runs(3_000, Exit::Code(0)).obey();
    assert!(journal.state.git.mixed);
    let journal = journal.runs(3_000, Exit::Code(0)).obey();
    assert!(!journal.state.git.mixed);
}

#[test]
fn a_secret_in_the_history_is_remembered_unless_it_is_allowed() {
    let exposed = |allowed| ExposedSecret {
        commit: oid(1),
        path: RepoPath::from_bytes(b"a.toml"),
        what: "a GitHub token".into(),
        line: Some(3),
        allowed,
    };
    let mut report = CommitReport::skipped(1, SkipReason::Nothing, Some(oid(1)));
    report.exposed = vec![exposed(true), exposed(false)];
    let journal = worked().then(Event::CommitSettled(Box::new(report))).obey();
    assert_eq!(journal.state.git.exposed, [exposed(false)]);
    let reason = view::status(&journal.state, view::Alive::DRIVEN).reason;
    assert!(reason.ends_with("a secret seems to be in the history: a.toml of commit 0000000000: line 3 looks like a GitHub token"), "{reason}");
}

#[test]
fn a_reason_names_the_iteration_that_is_not_committed() {
    let skipped = CommitReport::skipped(1, SkipReason::NoIdentity, Some(oid(0)));
    let journal = worked().then(Event::CommitSettled(Box::new(skipped)));
    // The second has begun, and was refunded.
    let journal =
        journal.obey().spawns().then(asked(Ask::Pause(Urgency::Now))).ends(finished(Exit::Signal(2)));
    let journal = journal.obey();
    assert_eq!(journal.state.iteration, 2);
    let reason = view::status(&journal.state, view::Alive::NO_RUNNER).reason;
    assert!(reason.contains("; iteration 1 is not committed: git does not know who commits"), "{reason}");
}

#[test]
fn uncommitted_work_stays_the_loops_own_when_the_base_is_retaken() {
    let taken = |dirty: Vec<Dirty>| {
        Event::BaseTaken(Box::new(Base {
            head: Some(oid(0)),
            protected: Some(oid(5)),
            dirty,
            ..Base::default()
        }))
    };
    let gated = Spec { gates: gates([true]), ..spec() };
    let mut journal = Journal::of(Spec { protect: frozen(), ..gated });
    journal.state.spec.git.workflow = Workflow::Commit;
    let journal = journal.taken_over().then(taken(Vec::new())).takes(0).gates_end(&[1]);
    let journal = journal.attempts(finished(Exit::Code(0))).takes(1).gates_end(&[1]);
    let journal = journal.asks(Ask::Pause(Urgency::AfterIteration)).obey().resumes();
    assert_eq!(journal.next(), Step::TakeBase, "a person may have changed what is protected");
    let work = Dirty { path: RepoPath::from_bytes(b"work"), stamp: None };
    assert_eq!(journal.then(taken(vec![work])).state.git.base.unwrap().dirty, []);
}

/// A commit omits a file that the user had changed before the start and the agent changed too: its stamp of the start
/// still shows that the agent did.
#[test]
fn a_file_with_changes_of_both_keeps_its_stamp_of_the_start() {
    let dirty = |stamp| Dirty { path: RepoPath::from_bytes(b"notes"), stamp: Some(stamp) };
    let taken = |head, stamp| {
        let branch = Some("main".into());
        let dirty = vec![dirty(stamp), Dirty { path: RepoPath::from_bytes(b"other"), stamp: Some(stamp) }];
        Event::BaseTaken(Box::new(Base { head: Some(oid(head)), branch, dirty, ..Base::default() }))
    };
    let mut spec = spec();
    spec.git.workflow = Workflow::Commit;
    let journal = Journal::of(spec).taken_over().then(taken(0, 1)).runs(3_000, Exit::Code(0));
    let left_out = OmittedPath { path: RepoPath::from_bytes(b"notes"), why: LeftOutReason::DirtyBefore };
    let report = CommitReport {
        left_out: vec![left_out],
        ..CommitReport::skipped(1, SkipReason::Nothing, Some(oid(0)))
    };
    let journal = journal.then(Event::CommitSettled(Box::new(report)));
    let journal = resumed(journal.then(asked(Ask::Pause(Urgency::AfterIteration))).obey());
    let stamps = journal.then(taken(0, 2)).state.git.base.unwrap().dirty;
    assert_eq!(stamps.iter().map(|dirty| dirty.stamp).collect::<Vec<_>>(), [Some(1), Some(2)]);
}

fn frozen() -> ProtectSpec {
    ProtectSpec { frozen: vec!["ci/**".into()], ..ProtectSpec::default() }
}
