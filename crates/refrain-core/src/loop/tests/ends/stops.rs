//! What a hook answers to a session that ends its turn, by table.

use rstest::rstest;

use crate::event::{Event, Exit, Process};
use crate::r#loop::LoopState;
use crate::r#loop::tests::journal::{Journal, finished, id, session};
use crate::session::{LoopOwner, Session, SessionLoop, Stop, TurnDecision, by_turn, is_heard, reminder};

const STOP: Stop =
    Stop { is_own: true, is_inside: false, has_background: false, asks: false, has_spoken: true };

#[rstest]
#[case::its_own(STOP, true)]
#[case::of_an_agent_below(Stop { is_own: false, ..STOP }, false)]
#[case::of_an_agent_that_a_loop_started(Stop { is_inside: true, ..STOP }, false)]
#[case::something_works_on(Stop { has_background: true, ..STOP }, false)]
#[case::a_question_is_open(Stop { asks: true, ..STOP }, false)]
#[case::its_message_is_unknown(Stop { has_spoken: false, ..STOP }, false)]
fn a_turn_is_over_with_its_own_word(#[case] stop: Stop, #[case] ends: bool) {
    assert_eq!(stop.ends_a_turn(), ends);
}

/// A loop of this name whose turn began at this second.
fn under(name: &str, second: i64) -> LoopState {
    let mut state = Journal::in_session().after_ms(1_000 * second).starts().state;
    state.spec.id = name.parse().unwrap();
    state
}

fn unnamed() -> LoopState {
    LoopState { session: Some(session(None)), ..under("a", 1) }
}

#[rstest]
#[case::its_own(under("a", 1), "s", LoopOwner::Own)]
#[case::another(under("a", 1), "t", LoopOwner::Other)]
#[case::unnamed(unnamed(), "t", LoopOwner::Unbound)]
#[case::of_another_process(
    LoopState { session: Some(Session { process: None, ..session(None) }), ..unnamed() }, "t", LoopOwner::Other
)]
#[case::of_a_runner(LoopState { session: None, ..under("a", 1) }, "s", LoopOwner::NoSession)]
fn a_note_is_looked_into(#[case] state: LoopState, #[case] name: &str, #[case] whose: LoopOwner) {
    let here = session(None).process;
    assert_eq!(LoopOwner::of(&state, name, here), whose);
    let capped = Journal::in_session().turns(finished(Exit::Unseen)).obey().state;
    let ended = LoopState { lifecycle: capped.lifecycle, ..state };
    assert!(ended.ended.is_none() || LoopOwner::of(&ended, name, here) == LoopOwner::NoSession);
    assert_ne!(LoopOwner::of(&unnamed(), "t", Some(Process { pid: 1, start: 1 })), LoopOwner::Unbound);
}

#[test]
fn the_loop_whose_turn_began_last_gets_the_stop_hook() {
    let between = Journal::in_session().after_ms(5_000).turns(finished(Exit::Unseen)).state;
    let between =
        LoopState { spec: crate::Spec { id: "b".parse().unwrap(), ..between.spec.clone() }, ..between };
    let mut begun = Journal::in_session().state;
    begun.spec.id = "c".parse().unwrap();
    let mut loops = [begun, under("a", 2), between, under("d", 9)];
    by_turn(&mut loops);
    let order: Vec<_> = loops.iter().map(|state| state.spec.id.as_str()).collect();
    assert_eq!(order, ["d", "b", "a", "c"], "one without a turn comes last");
}

#[test]
fn a_turn_is_heard_once() {
    let journal = Journal::in_session().starts();
    assert!(is_heard(&journal.state, Some(id(1, 1))));
    assert!(!is_heard(&journal.state, None), "none was under way when it was said");
    let journal = journal.after_ms(1).ends(finished(Exit::Unseen));
    assert!(!is_heard(&journal.state, Some(id(1, 1))), "it is over");
    assert!(!is_heard(&journal.starts().state, Some(id(1, 1))), "the next is under way");
}

#[test]
fn a_session_continues_unless_its_loop_has_stopped() {
    let state = under("a", 1);
    let said = |stands| match TurnDecision::of(&state.spec.id, stands) {
        TurnDecision::GoOn(text) | TurnDecision::Ended(text) => text,
        TurnDecision::LetGo => String::new(),
    };
    let marker = "[loop a iteration 2/20]";
    assert_eq!(said(SessionLoop::Next { marker, prompt: "Mend it." }), "[loop a iteration 2/20]\n\nMend it.");
    assert!(
        said(SessionLoop::Under(&state))
            .starts_with("[loop a iteration 1/∞] This turn of the loop is not over.")
    );
    assert!(said(SessionLoop::Proving).ends_with("refrain tick hold a"));
    assert!(said(SessionLoop::Resting).ends_with("refrain tick hold a"));
    let stopped =
        SessionLoop::Stopped { status: "blocked", reason: "no\nkey", needs: Some("refrain resume a") };
    assert_eq!(said(stopped), "Loop a: blocked: no key. Next: refrain resume a");
    assert_eq!(said(SessionLoop::Unknown), "");
    assert!(reminder(&state).starts_with("[loop a iteration 1/∞] This session drives this loop."));
}

#[test]
fn a_session_that_is_bound_again_keeps_its_turn() {
    let journal = Journal::in_session().starts().then(Event::SessionBound(session(Some("t"))));
    assert_eq!(LoopOwner::of(&journal.state, "t", None), LoopOwner::Own);
    assert!(is_heard(&journal.state, Some(id(1, 1))));
}
