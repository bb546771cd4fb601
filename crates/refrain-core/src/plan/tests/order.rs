//! Which event can follow which. Any other order in a journal is damage, and changes nothing.

use std::collections::BTreeSet;

use super::*;
use crate::ids::RequestId;

/// Makes the list from one row for each kind of event, with its name. The rows are the arms of a match as well: a new
/// kind of event does not compile without its row.
macro_rules! rows {
    ($($name:literal $kind:pat => $shapes:expr,)*) => {
        fn name(event: &PlanEvent) -> &'static str {
            match event { $($kind => $name,)* }
        }

        /// An event of every kind, in shapes that fit some plan of [`plans`], and in shapes that fit none.
        fn every_event() -> Vec<PlanEvent> {
            let mut events = Vec::new();
            $(
                let shapes: Vec<PlanEvent> = Vec::from_iter($shapes);
                assert!(!shapes.is_empty() && shapes.iter().all(|event| name(event) == $name), "{shapes:?}");
                events.extend(shapes);
            )*
            events
        }
    };
}

const NAMES: [&str; 3] = ["1", "2", "unknown"];

fn ended(name: &str, end: TaskEnd) -> PlanEvent {
    PlanEvent::TaskEnded(Box::new(task_ended(name, end)))
}

fn begun(name: &str) -> PlanEvent {
    PlanEvent::TaskStarted(Box::new(TaskStarted {
        task: id(name),
        round: 9,
        id: "plan-loop".parse().unwrap(),
        slot: 0,
        onto: oid(1),
        granted: 3,
        money: None,
    }))
}

fn handed(head: Option<u32>, rest: &[u32], refused: Option<&str>) -> PlanEvent {
    let (head, rest) = (head.map(oid), rest.iter().copied().map(oid).collect());
    PlanEvent::HandedOver { head, rest, waves: vec![], refused: refused.map(str::to_owned) }
}

fn completed(wave: u32, tasks: &[&str], rest: &[u32]) -> PlanEvent {
    let (tasks, rest) =
        (tasks.iter().map(|task| id(task)).collect(), rest.iter().copied().map(oid).collect());
    let wave = WaveNumber(wave);
    PlanEvent::WaveCompleted { wave, commit: Some(oid(9)), tasks, rest, commits: vec![] }
}

rows! {
    "plan.started" PlanEvent::Started(_) => {
        let spec = Plan::new(|_| {}).state.spec;
        [PlanEvent::Started(Box::new(PlanStarted { format: FORMAT, refrain: "0.1.0".into(), spec }))]
    },
    "runner.started" PlanEvent::RunnerStarted { .. } => [PlanEvent::RunnerStarted { runner: runner(2) }],
    "tasks.taken" PlanEvent::TasksTaken { .. } => [PlanEvent::TasksTaken { tasks: vec![card("1", &[])] }],
    "tasks.refused" PlanEvent::TasksRefused { .. } => [PlanEvent::TasksRefused { error: "no".into() }],
    "base.taken" PlanEvent::BaseTaken { .. } => [PlanEvent::BaseTaken { head: oid(1), branch: None }],
    "task.started" PlanEvent::TaskStarted(_) => NAMES.map(begun),
    "task.ended" PlanEvent::TaskEnded(_) => NAMES
        .into_iter()
        .flat_map(|task| [TaskEnd::Proven { tree: None }, TaskEnd::Rests].map(|end| ended(task, end))),
    "task.tuned" PlanEvent::TaskTuned { .. } => {
        NAMES.map(|task| PlanEvent::TaskTuned { task: id(task), words: "left".into() })
    },
    "batch.merged" PlanEvent::BatchMerged { .. } => NAMES.map(|task| PlanEvent::BatchMerged {
        merged: vec![MergedTask { task: id(task), tree: oid(101) }],
        refused: Vec::new(),
    }),
    "batch.verified" PlanEvent::BatchVerified { .. } => {
        [1, 2].map(|upto| PlanEvent::BatchVerified { upto, failed: None })
    },
    "batch.landed" PlanEvent::BatchLanded { .. } => [1, 2].map(|count| PlanEvent::BatchLanded {
        commits: vec![Some(oid(2)); count],
        refused: None,
        tip: oid(2),
        line_was: (count == 2).then(|| oid(8)),
    }),
    "wave.completed" PlanEvent::WaveCompleted { .. } => [
        completed(1, &["1"], &[]),
        completed(2, &["1"], &[]),
        completed(1, &["1"], &[9, 10]),
        completed(1, &[], &[9]),
    ],
    "waves.handed-over" PlanEvent::HandedOver { .. } => [
        handed(Some(3), &[], None),
        handed(Some(3), &[7, 8, 9], None),
        handed(None, &[], Some("it is dirty")),
        handed(None, &[], None),
    ],
    "plan.hindered" PlanEvent::Hindered { .. } => [PlanEvent::Hindered { error: "fatal: no".into() }],
    "asked" PlanEvent::Asked { .. } => {
        let request: RequestId = "a-1".parse().unwrap();
        let asks = [Ask::Pause(Urgency::Now), Ask::Cancel(Urgency::Now), Ask::Steer("left".into()), Ask::Proceed];
        asks.map(|ask| PlanEvent::Asked { request: Some(request.clone()), ask, by: Default::default() })
    },
    "plan.ended" PlanEvent::Ended(_) => [PlanEnd::Paused, PlanEnd::Cancelled].map(PlanEvent::Ended),
    "plan.resumed" PlanEvent::Resumed { .. } => [PlanEvent::Resumed { limits: PlanLimits::default() }],
    "journal.torn" PlanEvent::JournalTorn { .. } => {
        [PlanEvent::JournalTorn { bytes: 3, kept_as: "torn".into() }]
    },
    "journal.restored" PlanEvent::JournalRestored { .. } => [PlanEvent::JournalRestored { bytes: 3, kept_as: Some("foreign-1".into()) }],
}

/// Plans in every state that a plan passes through.
fn plans() -> Vec<Plan> {
    let new = || Plan::of(&[("1", &[]), ("2", &["1"])], |_| {});
    let begun = || new().start("1", 3, None);
    let landed = || new().does("1", 2);
    vec![
        Plan::new(|_| {}),
        new(),
        begun(),
        begun().proves("1"),
        begun().stops("1", Stop::UsedUp),
        begun().proves("1").merges(&["1"]),
        begun().proves("1").merges(&["1"]).verified(1, true),
        landed(),
        landed().completes(1, 3),
        landed().completes(1, 3).hands_over(3),
        // Work that landed ahead of its wave is made anew when that is complete.
        Plan::of(&[("1", &[]), ("3", &[])], |_| {})
            .starts()
            .proves("3")
            .merges(&["3"])
            .verified(1, true)
            .lands(1, 2),
        new().asked(Ask::Pause(Urgency::Now)).ends(),
        new().asked(Ask::Cancel(Urgency::Now)).ends(),
    ]
}

#[test]
fn after_every_event_each_other_event_either_fits_or_changes_nothing() {
    let (mut fitting, mut refused) = (BTreeSet::new(), BTreeSet::new());
    for plan in plans() {
        for event in every_event() {
            let mut after = plan.clone();
            match after.try_then(event.clone()) {
                Ok(()) => {
                    assert_eq!(after.state.seq, plan.state.seq + 1);
                    fitting.insert(name(&event));
                }
                Err(damage) => {
                    let before = format!("{:?}", plan.state);
                    assert_eq!(format!("{:?}", after.state), before, "changed by what it refused: {event:?}");
                    assert!(matches!(damage, Damage::Order { .. }), "{damage}");
                    refused.insert(name(&event));
                }
            }
        }
    }
    let every: BTreeSet<_> = every_event().iter().map(name).collect();
    let fits_always = ["base.taken", "journal.restored", "journal.torn", "tasks.refused", "tasks.taken"];
    let but = |left: &[&'static str]| every.iter().copied().filter(|name| !left.contains(name)).collect();
    assert_eq!((fitting, refused), (but(&["plan.started"]), but(&fits_always)));
}
