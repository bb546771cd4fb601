//! Many sessions of one project at once: none has anything to do with another's loop, and no turn is counted twice.

use std::sync::Barrier;

use camino::Utf8PathBuf;
use proptest::prelude::*;
use proptest::sample::Index;
use refrain_agents::hook::{self, HookInput};
use refrain_core::MachineEnd;
use refrain_core::event::{Ask, Asker, Urgency};
use refrain_core::r#loop::MAX_REFUNDS;
use refrain_core::promise::{MatchMode, Promise};
use refrain_core::session::{SessionSpec, TurnDecision};
use refrain_core::spec::{AgentSpec, Limits, StuckSpec};

use super::*;
use crate::{Host, LoopRequest};

const LOOPS: usize = 20;
const CAP: u32 = 12;
const CLAIM: &str = "It is done.\n<promise>COMPLETE</promise>";
const AT_ONCE: Duration = Duration::ZERO;

/// A project in a folder of its own.
pub(crate) struct TestProject {
    pub(crate) service: Service,
    _dir: tempfile::TempDir,
}

impl TestProject {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir_in(testkit::scratch_folder()).unwrap();
        let path = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
        let home = path.join("home");
        let host = Host {
            program: "/nowhere/refrain".into(),
            env: Vec::new(),
            data_home: home.clone(),
            state_home: home.clone(),
            config_home: home,
            version: "test".into(),
        };
        let project = path.join("project");
        refrain_store::make_dir(&project).unwrap();
        Self { service: Service::open(&project, host).unwrap(), _dir: dir }
    }

    /// Begins the loop of this number, of the session of the same.
    pub(crate) fn begin(&self, number: usize) -> LoopId {
        let project = self.service.project().worktree.clone();
        let id = id_of(number);
        let spec = spec(id.clone(), project);
        let session = self.service.session_here(AgentKind::Claude, Some(&name(number)));
        self.service.begin_in_session(spec, Some(id), session).unwrap()
    }

    fn state(&self, id: &LoopId) -> LoopState {
        self.service.state(id).unwrap()
    }

    fn hook(&self, told: &HookInput) -> Option<String> {
        match self.service.at_stop(AgentKind::Claude, told, false) {
            TurnDecision::GoOn(text) => Some(text),
            TurnDecision::LetGo | TurnDecision::Ended(_) => None,
        }
    }

    fn advance(&self, id: &LoopId) -> Turn {
        self.service.turn(&self.state(id), Some(&TurnReport::default()), AT_ONCE).unwrap()
    }
}

fn id_of(number: usize) -> LoopId {
    format!("loop-{number:02}").parse().unwrap()
}

fn name(number: usize) -> String {
    format!("session-{number:02}")
}

fn told(session: &str, event: &str, message: &str, background: usize) -> HookInput {
    let background: Vec<_> = (0..background).map(|task| serde_json::json!({ "id": task })).collect();
    let input = serde_json::json!({
        "session_id": session, "hook_event_name": event, "last_assistant_message": message,
        "background_tasks": background,
    });
    hook::read(input.to_string().as_bytes()).unwrap()
}

fn spec(id: LoopId, project: Utf8PathBuf) -> Spec {
    let agent = AgentSpec::new(AgentKind::Claude, "claude");
    let limits = Limits { max_iterations: Some(CAP), ..Limits::default() };
    let begun =
        SessionSpec { command: "/refrain:loop".into(), args: String::new(), isolation: Default::default() };
    Spec {
        session: Some(begun),
        promise: Some(Promise { text: "COMPLETE".parse().unwrap(), mode: MatchMode::Tag }),
        limits, // The turns of these sessions do no work.
        stuck: StuckSpec { threshold: 1_000, ..StuckSpec::default() },
        ..Spec::new(id, agent, "Mend it.", project.clone())
    }
}

#[derive(Clone, Copy, Debug)]
enum LoopEvent {
    Advances,
    EndsATurn,
    Claims,
    WaitsForBackground,
    ClaimsBelow,
    ForeignClaims,
    ForeignStarts,
    IsCompacted,
    SaysDone,
    SaysCapped,
    IsCancelled,
    /// The session is lost, and resumes with its loop.
    IsLost,
}

fn happens() -> impl Strategy<Value = LoopEvent> {
    use LoopEvent::*;
    prop_oneof![
        6 => Just(Advances),
        12 => Just(EndsATurn),
        1 => prop_oneof![Just(Claims), Just(SaysDone), Just(SaysCapped), Just(IsCancelled)],
        6 => prop_oneof![
            Just(WaitsForBackground), Just(ClaimsBelow), Just(ForeignClaims), Just(ForeignStarts),
            Just(IsCompacted), Just(IsLost)
        ],
    ]
}

/// What a loop's counter must be, by rules of its own.
#[derive(Clone, Debug, Default, PartialEq)]
struct Counter {
    iteration: u32,
    charged: u32,
    under_way: bool,
    end: Option<&'static str>,
    lost: u32,
}

impl Counter {
    fn ends(&mut self, claims: bool) {
        if std::mem::take(&mut self.under_way) {
            self.charged += 1;
            self.lost = 0;
            self.end = claims.then_some("completed");
        }
    }

    /// The next turn begins, if there is one.
    fn begins(&mut self) {
        match self.end {
            None if self.lost == MAX_REFUNDS => self.end = Some("blocked"),
            None if !self.under_way && self.charged == CAP => self.end = Some("iteration-cap"),
            None if !self.under_way => {
                self.under_way = true;
                self.iteration = self.charged + 1;
            }
            Some(_) | None => {}
        }
    }

    /// Applies an event, and says whether the session continues because of it; none if the session is not asked.
    fn after(&mut self, happens: LoopEvent) -> Option<bool> {
        use LoopEvent::*;
        let was = self.end;
        match happens {
            Advances | EndsATurn => {
                self.ends(false);
                self.begins();
                Some(self.end.is_none())
            }
            Claims | SaysDone => {
                self.ends(true);
                self.begins();
                Some(self.end.is_none())
            }
            WaitsForBackground | ClaimsBelow | ForeignClaims | ForeignStarts => Some(false),
            IsCompacted => Some(was.is_none()),
            SaysCapped if was.is_none() => {
                self.ends(false);
                self.end = Some("iteration-cap");
                None
            }
            IsCancelled if was.is_none() => {
                self.under_way = false;
                self.end = Some("cancelled");
                None
            }
            IsLost if was.is_none() => {
                self.lost += u32::from(std::mem::take(&mut self.under_way));
                None
            }
            SaysCapped | IsCancelled | IsLost => None,
        }
    }
}

/// Does it to the real one; the prompt of its session, if it gets one.
fn take(place: &TestProject, number: usize, happens: LoopEvent, is_over: bool) -> Option<String> {
    let (id, service) = (id_of(number), &place.service);
    let next = |turn| match turn {
        Turn::Next { marker, prompt } => Some(format!("{marker}\n{prompt}")),
        Turn::Stopped(_) => None,
        turn @ (Turn::Under(_) | Turn::Proving | Turn::Resting { .. }) => panic!("{turn:?}"),
    };
    let stops =
        |session: &str, event, message, background| place.hook(&told(session, event, message, background));
    let own = name(number);
    match happens {
        LoopEvent::Advances => next(place.advance(&id)),
        LoopEvent::EndsATurn => stops(&own, "Stop", "I will say <promise>COMPLETE</promise> then.", 0),
        LoopEvent::Claims => stops(&own, "Stop", CLAIM, 0),
        LoopEvent::WaitsForBackground => stops(&own, "Stop", CLAIM, 1),
        LoopEvent::ClaimsBelow => stops(&own, "SubagentStop", CLAIM, 0),
        LoopEvent::ForeignClaims => stops("elsewhere", "Stop", CLAIM, 0),
        LoopEvent::ForeignStarts => {
            service.at_start(AgentKind::Claude, &told("elsewhere", "SessionStart", "", 0), false)
        }
        LoopEvent::IsCompacted => {
            service.at_start(AgentKind::Claude, &told(&own, "SessionStart", "", 0), false)
        }
        LoopEvent::SaysDone => {
            let said = TurnReport { claims: true, ..TurnReport::default() };
            next(service.turn(&place.state(&id), Some(&said), AT_ONCE).unwrap())
        }
        _ if is_over => None,
        LoopEvent::SaysCapped => {
            service.cap_in_session(&id).unwrap();
            None
        }
        LoopEvent::IsCancelled => {
            service
                .ask(&id, LoopRequest::Cancel, (Ask::Cancel(Urgency::Now), Asker::Person), |_| ())
                .unwrap();
            None
        }
        LoopEvent::IsLost => {
            service.leave_session(&id).unwrap();
            let session = service.session_here(AgentKind::Claude, Some(&own));
            service.resume_in_session(&id, &Grant::default(), session).unwrap();
            None
        }
    }
}

/// The counters of the real one; what only its model has is taken from that.
fn counted(state: &LoopState, model: &Counter) -> Counter {
    Counter {
        iteration: state.iteration,
        charged: state.charged,
        under_way: state.in_flight().is_some(),
        end: state.ended.map(|ended| ended.end.name()),
        lost: model.lost,
    }
}

proptest! {
    // Ten thousand events in all.
    #![proptest_config(ProptestConfig {
        cases: 20,
        max_shrink_iters: 50,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_session_touches_the_loop_of_another(
        events in proptest::collection::vec((any::<Index>(), happens()), 500),
    ) {
        let place = TestProject::new();
        let ids: Vec<_> = (0..LOOPS).map(|number| place.begin(number)).collect();
        let mut counters = vec![Counter::default(); LOOPS];
        let lengths = || -> Vec<_> {
            ids.iter().map(|id| place.service.locate(id).unwrap().dir.journal().metadata().unwrap().len()).collect()
        };
        let mut before = lengths();
        for (at, happens) in events {
            let number = at.index(LOOPS);
            let is_over = counters[number].end.is_some();
            let goes_on = counters[number].after(happens).unwrap_or_default();
            let told = take(&place, number, happens, is_over);
            prop_assert_eq!(told.is_some(), goes_on, "{:?} of {}: {:?}", happens, number, told);
            if let Some(told) = told {
                let marker = format!("[loop {} iteration {}/{CAP}]", ids[number], counters[number].iteration);
                prop_assert!(told.starts_with(&marker), "{told} is not {marker}");
                let others = ids.iter().enumerate().filter(|(other, _)| *other != number);
                for (_, other) in others {
                    prop_assert!(!told.contains(other.as_str()), "{told} names {other}");
                }
            }
            let after = lengths();
            for other in (0..LOOPS).filter(|other| *other != number) {
                prop_assert_eq!(before[other], after[other], "{:?} of {} wrote to {}", happens, number, other);
            }
            before = after;
            let model = &counters[number];
            prop_assert_eq!(&counted(&place.state(&ids[number]), model), model, "{:?}", happens);
        }
        for (number, id) in ids.iter().enumerate() {
            let records = place.service.events(id).unwrap();
            let count = |is: fn(&Event) -> bool| records.iter().filter(|record| is(&record.event)).count() as u32;
            prop_assert_eq!(count(|event| matches!(event, Event::LoopStarted(_))), 1);
            prop_assert_eq!(count(|event| matches!(event, Event::AttemptFinished(_))), counters[number].charged);
            let own = name(number);
            for record in &records {
                if let Event::SessionBound(session) = &record.event {
                    prop_assert_eq!(session.id.as_ref(), Some(&own));
                }
            }
        }
    }
}

#[test]
fn two_sessions_at_the_same_instant_count_each_their_own() {
    let place = TestProject::new();
    let ids = [0, 1].map(|number| place.begin(number));
    let together = Barrier::new(2);
    std::thread::scope(|scope| {
        for (number, id) in ids.iter().enumerate() {
            let (place, together) = (&place, &together);
            scope.spawn(move || {
                place.advance(id);
                for turn in 2..=CAP {
                    together.wait();
                    let answer = place.hook(&told(&name(number), "Stop", "well", 0)).unwrap();
                    assert!(answer.starts_with(&format!("[loop {id} iteration {turn}/{CAP}]")), "{answer}");
                }
            });
        }
    });
    for id in &ids {
        assert_eq!(place.state(id).charged, CAP - 1);
    }
}

#[test]
fn of_two_that_say_the_same_at_once_one_is_counted() {
    let place = TestProject::new();
    let id = place.begin(0);
    place.advance(&id);
    for turn in 2..=CAP {
        let (seen, together) = (place.state(&id), Barrier::new(2));
        let turns = std::thread::scope(|scope| {
            let says = || {
                together.wait();
                place.service.turn(&seen, Some(&TurnReport::default()), Duration::from_secs(30)).unwrap()
            };
            [scope.spawn(says), scope.spawn(says)].map(|thread| thread.join().unwrap())
        });
        assert_eq!(turns.iter().filter(|turn| matches!(turn, Turn::Next { .. })).count(), 1, "{turns:?}");
        assert_eq!(turns.iter().filter(|turn| matches!(turn, Turn::Under(_))).count(), 1, "{turns:?}");
        assert_eq!((place.state(&id).charged, place.state(&id).iteration), (turn - 1, turn));
    }
}
