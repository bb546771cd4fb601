use crate::event::{End, Event, Exit};
use crate::r#loop::tests::journal::{Journal, gates, id, spec};
use crate::r#loop::{ChildId, Step};
use crate::mirror::CarriedCounter;
use crate::spec::{CritiqueSpec, Spec};

/// A loop that had three iterations elsewhere, of `most`.
fn carried(most: u32, change: impl FnOnce(&mut Spec)) -> Journal {
    let mut spec = spec();
    spec.limits.max_iterations = Some(most);
    spec.carried = Some(CarriedCounter { from: "/project/.synthex/loops/mend.json".into(), iteration: 3 });
    change(&mut spec);
    Journal::of(spec).taken_over()
}

#[test]
fn a_carried_loop_begins_after_the_last_iteration() {
    let journal = carried(5, |_| ());
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 4 });
    let journal = journal.runs(3_000, Exit::Code(0));
    assert_eq!((journal.state.iteration, journal.state.charged, journal.state.attempts.len()), (4, 4, 1));
    let journal = journal.runs(3_000, Exit::Code(0));
    assert_eq!(journal.next(), Step::Finish(End::IterationCap), "its own two and those three");
}

#[test]
fn no_iteration_of_a_carried_loop_is_repeated_or_skipped() {
    for iteration in [1, 3, 5] {
        carried(9, |_| ()).refuses(Event::IterationBegun { iteration, work: None });
    }
}

#[test]
fn the_gates_of_a_carried_loop_run_before_it_begins() {
    let journal = carried(5, |spec| spec.gates = gates([true]));
    assert_eq!(journal.next(), Step::TakeCandidate);
    let journal = journal.takes(0).gates_end(&[1]);
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 4 });
    assert_eq!(journal.starts().state.in_flight().map(|flight| flight.id), Some(id(4, 1)));
}

#[test]
fn no_critic_runs_on_iterations_from_before_the_carry() {
    let critic = spec().agent;
    let journal = carried(9, |spec| {
        spec.critique = Some(CritiqueSpec { every: 3, critic, timeout: CritiqueSpec::TIMEOUT });
    });
    assert_eq!(journal.next(), Step::BeginIteration { iteration: 4 });
    let journal = (0..3).fold(journal, |journal, _| journal.runs(3_000, Exit::Code(0)));
    assert_eq!(journal.next(), Step::Start(ChildId::Critic { iteration: 6 }));
}
