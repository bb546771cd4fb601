//! Notices for a person who is not watching the loop.

use rstest::rstest;

use crate::agent::FaultKind;
use crate::event::{Ask, BlockReason, ClaimSource, End, Event, Exit, Urgency};
use crate::r#loop::LoopState;
use crate::r#loop::tests::journal::{Journal, failing, finished};
use crate::spec::Millis;
use crate::view::StatusWord;
use crate::view::notice::{Notice, NoticeCheck, NoticeKind, NoticeWatch};

/// The notices of this journal; waits longer than `longest` seconds make one.
fn told(journal: &Journal, longest: Option<u64>) -> Vec<Notice> {
    let mut lookout = NoticeWatch::new(longest.map(|seconds| Millis(seconds * 1000)));
    let (first, rest) = journal.records.split_first().unwrap();
    let mut state = LoopState::begin(first).unwrap();
    let see = |record| {
        state.apply(record).unwrap();
        state.notice(record, &mut lookout)
    };
    rest.iter().filter_map(see).collect()
}

/// `count` attempts in a row that met an outage, each followed by a wait: 5 s, 10 s, 20 s.
fn outages(journal: Journal, count: usize) -> Journal {
    (0..count).fold(journal, |journal, _| {
        journal.spawns().after_ms(1_000).ends(failing(FaultKind::Overloaded)).obey().after_ms(600_000)
    })
}

#[rstest]
#[case(End::Completed { claim: ClaimSource::Promise }, StatusWord::Completed)]
#[case(End::Cancelled, StatusWord::Cancelled)]
#[case(End::Paused, StatusWord::Paused)]
#[case(End::IterationCap, StatusWord::IterationCap)]
#[case(End::Blocked { why: BlockReason::Login }, StatusWord::Blocked)]
fn every_end_makes_one_notice(#[case] end: End, #[case] status: StatusWord) {
    let journal = Journal::ended(end);
    let [notice] = &told(&journal, None)[..] else { panic!("it is reported once") };
    assert_eq!((notice.kind, notice.status, notice.seq), (NoticeKind::Ended, status, journal.state.seq));
    let began = journal.state.started_at.as_millisecond();
    assert_eq!(notice.key, format!("{}_{began}_{}", journal.state.spec.id, journal.state.seq));
    assert_eq!(notice.needs.is_some(), !matches!(status, StatusWord::Completed | StatusWord::Cancelled));
}

#[rstest]
#[case::not_asked_for(None, 4, 0)]
#[case::each_is_short_and_all_are_not(Some(14), 3, 1)]
#[case::once(Some(3), 4, 1)]
#[case::not_longer(Some(100_000), 4, 0)]
fn waits_in_a_row_make_a_notice_once_they_exceed_the_limit(
    #[case] longest: Option<u64>,
    #[case] count: usize,
    #[case] notices: usize,
) {
    let told = told(&outages(Journal::running(), count), longest);
    assert_eq!(told.len(), notices, "{told:#?}");
    assert!(told.iter().all(|it| it.kind == NoticeKind::Waits && it.status == StatusWord::Waiting));
    assert!(told.iter().all(|it| it.wait_until.is_some()));
}

#[test]
fn an_iteration_between_two_waits_restarts_their_count() {
    let journal = outages(Journal::running(), 1).spawns().after_ms(3_000).ends(finished(Exit::Code(0)));
    let journal = outages(journal, 1);
    assert_eq!(told(&journal, Some(3)).len(), 2, "they are two waits");
    let rests = Journal::limited(|limits| limits.pause = Some(Millis(60_000)));
    let rests = rests.runs(3_000, Exit::Code(0)).obey();
    assert!(matches!(rests.records.last().unwrap().event, Event::WaitStarted(_)));
    assert_eq!(told(&rests, Some(3)), [], "a person asked for that rest");
}

#[test]
fn a_loop_that_is_resumed_and_ends_again_is_notified_again() {
    let journal = Journal::ended(End::Paused).resumes().asks(Ask::Cancel(Urgency::AfterIteration)).obey();
    let told = told(&journal, None);
    assert_eq!(
        told.iter().map(|it| it.status).collect::<Vec<_>>(),
        [StatusWord::Paused, StatusWord::Cancelled]
    );
    assert_ne!(told[0].key, told[1].key);
}
