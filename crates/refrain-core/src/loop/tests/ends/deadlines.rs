//! Limits of time: of one attempt, of its silence, and of the loop.

use std::time::Duration;

use rstest::rstest;

use crate::event::{Ask, End, Event, Exit, StopReason, Urgency};
use crate::r#loop::tests::journal::{Journal, id, spawned, stop, time};
use crate::r#loop::{ChildId, Step};
use crate::spec::{Limits, Millis};

const fn limits(duration: Option<u64>, timeout: Option<u64>, idle: Option<u64>) -> [Option<u64>; 3] {
    [duration, timeout, idle]
}

fn set([duration, timeout, idle]: [Option<u64>; 3]) -> impl FnOnce(&mut Limits) {
    move |limits| {
        limits.max_duration = duration.map(Millis);
        limits.timeout = timeout.map(Millis);
        limits.idle_timeout = idle.map(Millis);
    }
}

#[rstest]
#[case::nothing(limits(None, None, None), None)]
#[case::its_time(limits(None, Some(5_000), None), Some((5_000, StopReason::TimeLimit)))]
#[case::its_silence(limits(None, None, Some(5_000)), Some((5_000, StopReason::Silence)))]
#[case::the_loops_own_duration(limits(Some(5_000), None, None), Some((5_000, StopReason::LoopDuration)))]
#[case::the_first_of_them(limits(Some(7_000), Some(6_000), Some(5_000)), Some((5_000, StopReason::Silence)))]
#[case::its_time_before_its_silence(limits(None, Some(5_000), Some(5_000)), Some((5_000, StopReason::TimeLimit)))]
#[case::its_silence_before_the_loop(limits(Some(6_000), None, Some(5_000)), Some((5_000, StopReason::Silence)))]
#[case::its_time_before_all(limits(Some(7_000), Some(5_000), Some(6_000)), Some((5_000, StopReason::TimeLimit)))]
#[case::no_time_at_all(limits(None, Some(0), None), Some((0, StopReason::TimeLimit)))]
fn an_attempt_is_awaited_until_a_limit_and_stopped_at_that_instant(
    #[case] limits: [Option<u64>; 3],
    #[case] stopped: Option<(i64, StopReason)>,
) {
    let mut journal = Journal::limited(set(limits)).spawns();
    let until = stopped.map(|(at, _)| time(at));
    for now in [0, 1, 2_500, 4_999] {
        journal.now = now;
        if stopped.is_none_or(|(at, _)| now < at) {
            assert_eq!(journal.next(), Step::Await { until }, "at {now}");
        }
    }
    if let Some((at, because)) = stopped {
        // However late it is asked, after a suspended night even: the limit that passed first gives the reason.
        for now in [at, at + 1, at + 999, at + 9_999_999] {
            journal.now = now;
            assert_eq!(journal.next(), Step::Stop(because), "at {now}");
        }
    }
}

const ALL_AT_ONCE: [Option<u64>; 3] = limits(Some(5_000), Some(5_000), Some(5_000));
const THE_LOOP_FIRST: [Option<u64>; 3] = limits(Some(5_000), Some(6_000), Some(7_000));

#[rstest]
fn the_loops_own_duration_comes_before_all(#[values(ALL_AT_ONCE, THE_LOOP_FIRST)] limits: [Option<u64>; 3]) {
    let journal = Journal::limited(set(limits)).spawns().after_ms(4_999);
    assert_eq!(journal.next(), Step::Await { until: Some(time(5_000)) });
    assert_eq!(journal.after_ms(1).next(), Step::Stop(StopReason::LoopDuration));
}

#[rstest]
fn and_still_does_when_it_is_late(
    #[values(ALL_AT_ONCE, THE_LOOP_FIRST)] limits: [Option<u64>; 3],
    #[values(1, 999, 9_999_999)] late: i64,
) {
    let journal = Journal::limited(set(limits)).spawns().after_ms(5_000 + late);
    assert_eq!(journal.next(), Step::Stop(StopReason::LoopDuration));
    // Requests meanwhile do not move it.
    let journal = journal.asks(Ask::Steer("go on".into()));
    assert_eq!(journal.next(), Step::Stop(StopReason::LoopDuration));
}

#[test]
fn an_attempts_time_counts_from_its_process() {
    let journal = Journal::limited(set([None, Some(5_000), None])).starts().after_ms(3_000);
    assert_eq!(journal.next(), Step::Await { until: None });
    assert_eq!(journal.then(spawned()).next(), Step::Await { until: Some(time(8_000)) });
}

#[test]
fn a_later_output_moves_the_end_of_patience_with_silence() {
    let mut journal = Journal::limited(set([None, None, Some(5_000)])).spawns();
    for heard in [1_000, 4_000, 9_000] {
        journal.live.last_output = Some(time(heard));
        journal.now = heard + 4_999;
        assert_eq!(journal.next(), Step::Await { until: Some(time(heard + 5_000)) });
        journal.now += 1;
        assert_eq!(journal.next(), Step::Stop(StopReason::Silence));
    }
}

#[test]
fn output_from_before_the_agent_started_is_ignored() {
    let mut journal =
        Journal::limited(set([None, None, Some(5_000)])).starts().after_ms(3_000).then(spawned());
    journal.live.last_output = Some(time(1_000));
    assert_eq!(journal.next(), Step::Await { until: Some(time(8_000)) });
}

#[rstest]
#[case::back(-3_600_000)]
#[case::ahead(3_600_000)]
fn a_clock_that_is_set_moves_no_limit_of_an_attempt(#[case] shift: i64) {
    let limits = set([None, Some(5_000), Some(4_000)]);
    let mut journal = Journal::limited(limits).starts().after_ms(1_000).then(spawned());
    journal.live.started = Some(time(shift));
    journal.now = 3_000 + shift;
    assert_eq!(journal.next(), Step::Await { until: Some(time(5_000 + shift)) });
    journal.now = 5_000 + shift;
    assert_eq!(journal.next(), Step::Stop(StopReason::Silence));
    journal.live.last_output = Some(time(4_500 + shift));
    journal.now = 6_000 + shift;
    assert_eq!(journal.next(), Step::Stop(StopReason::TimeLimit));
}

#[test]
fn output_moves_no_other_limit() {
    let mut journal = Journal::limited(set([Some(9_000), Some(5_000), None])).spawns();
    journal.live.last_output = Some(time(4_000));
    journal.now = 4_000;
    assert_eq!(journal.next(), Step::Await { until: Some(time(5_000)) });
}

#[rstest]
#[case::cancel(Ask::Cancel(Urgency::Now), StopReason::Cancel)]
#[case::pause(Ask::Pause(Urgency::Now), StopReason::Interrupt)]
fn an_urgent_ask_stops_the_attempt(#[case] ask: Ask, #[case] because: StopReason) {
    let journal = Journal::running().spawns().asks(ask);
    assert_eq!(journal.next(), Step::Stop(because));
    let journal = journal.obey();
    assert_eq!(journal.next(), Step::Await { until: None });
    let end = if because == StopReason::Cancel { End::Cancelled } else { End::Paused };
    assert_eq!(journal.exits(Exit::Signal(2)).next(), Step::Finish(end));
}

#[test]
fn cancel_comes_before_pause_and_both_before_any_limit() {
    let journal = Journal::limited(set([None, Some(0), None])).spawns().asks(Ask::Pause(Urgency::Now));
    assert_eq!(journal.next(), Step::Stop(StopReason::Interrupt));
    assert_eq!(journal.asks(Ask::Cancel(Urgency::Now)).next(), Step::Stop(StopReason::Cancel));
}

#[test]
fn nothing_is_stopped_before_it_is_spawned() {
    let limits = set([Some(1), Some(0), Some(0)]);
    let journal = Journal::limited(limits).starts().asks(Ask::Cancel(Urgency::Now)).after_ms(1_000_000);
    assert_eq!(journal.next(), Step::Await { until: None });
    assert_eq!(journal.then(spawned()).next(), Step::Stop(StopReason::Cancel));
}

#[test]
fn a_stop_is_requested_only_once() {
    let journal = Journal::limited(set([Some(1), Some(1), Some(1)])).spawns().after_ms(9).obey();
    let journal = journal.asks(Ask::Cancel(Urgency::Now)).after_ms(1_000_000);
    assert_eq!(journal.next(), Step::Await { until: None });
    journal.refuses(stop(StopReason::Cancel));
}

#[test]
fn a_limit_past_the_end_of_time_is_none_that_is_reached() {
    let journal = Journal::limited(set([Some(u64::MAX), Some(u64::MAX), Some(u64::MAX)])).spawns();
    assert_eq!(journal.next(), Step::Await { until: Some(jiff::Timestamp::MAX) });
}

#[test]
fn the_loops_own_duration_adds_up_over_attempts_and_refunds() {
    let journal = Journal::limited(set([Some(60_000), None, None])).runs(20_000, Exit::Code(0));
    let journal = journal.runs(10_000, Exit::Lost).spawns();
    assert_eq!(journal.next(), Step::Await { until: Some(time(60_000)) });
    let journal = journal.after_ms(30_000).obey();
    assert_eq!(journal.next(), Step::Await { until: None });
    let journal = journal.exits(Exit::Signal(2));
    assert_eq!(journal.next(), Step::Finish(End::TimedOut));
    assert_eq!(journal.state.charged, 2);
}

#[test]
fn a_pause_is_not_the_loops_own_time() {
    let journal = Journal::limited(set([Some(60_000), None, None])).runs(20_000, Exit::Code(0));
    let journal = journal.asks(Ask::Pause(Urgency::AfterIteration)).obey().after_ms(1_000_000);
    let journal = journal.resumes().after_ms(1_000);
    assert_eq!(journal.state.active(time(journal.now)), Duration::from_secs(21));
}

#[test]
fn a_wait_is_not_the_loops_own_time() {
    let journal = Journal::limited(|limits| {
        (limits.pause, limits.max_duration) = (Some(Millis(30_000)), Some(Millis(60_000)));
    });
    let journal = journal.runs(20_000, Exit::Code(0)).after_ms(1_000).obey();
    assert_eq!(journal.state.active(time(journal.now)), Duration::from_secs(21));
    let journal = journal.after_ms(29_000);
    assert_eq!(journal.state.active(time(journal.now)), Duration::from_secs(21));
    let journal = journal.spawns();
    assert_eq!(journal.next(), Step::Await { until: Some(time(journal.now + 39_000)) });
}

#[test]
fn the_time_between_two_runners_is_not_the_loops_own() {
    let journal = Journal::limited(set([Some(60_000), None, None])).spawns().after_ms(5_000);
    let journal = journal.asks(Ask::Steer("the runner's last event".into())).after_ms(1_000_000).taken_over();
    assert_eq!(journal.state.active(time(journal.now)), Duration::from_secs(5));
    assert_eq!(journal.next(), Step::Start(ChildId::Attempt(id(1, 2))));
}

#[test]
fn nor_where_the_dead_runner_left_a_torn_line() {
    let journal = Journal::limited(set([Some(60_000), None, None])).spawns().after_ms(1_000_000);
    let torn = Event::JournalTorn { bytes: 9, kept_as: "torn".into() };
    let journal = journal.then(torn);
    assert_eq!(journal.state.active(time(journal.now)), Duration::ZERO);
    let journal = journal.after_ms(1_000_000).taken_over();
    assert_eq!(journal.state.active(time(journal.now)), Duration::ZERO);
    assert_eq!(journal.next(), Step::Start(ChildId::Attempt(id(1, 2))));
    let journal = journal.after_ms(2_000);
    assert_eq!(journal.state.active(time(journal.now)), Duration::from_secs(2));
}

#[test]
fn before_its_first_runner_a_loop_has_no_time_of_its_own() {
    let journal =
        Journal::of(crate::r#loop::tests::journal::spec()).after_ms(1_000_000).taken_over().after_ms(2_000);
    assert_eq!(journal.state.active(time(journal.now)), Duration::from_secs(2));
}

#[test]
fn a_clock_that_was_set_back_takes_no_time_away() {
    let mut journal = Journal::limited(set([Some(60_000), Some(60_000), None])).spawns().after_ms(20_000);
    journal = journal.asks(Ask::Steer("go on".into()));
    journal.now = 10_000;
    assert_eq!(journal.state.active(time(journal.now)), Duration::from_secs(20));
    assert_eq!(journal.next(), Step::Await { until: Some(time(50_000)) });
}
