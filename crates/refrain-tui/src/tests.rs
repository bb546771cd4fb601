//! Screens as they look, at several sizes, and what keys and the mouse do to them.

use std::sync::Arc;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use jiff::Timestamp;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;
use refrain_core::view::plan::PlanStatus;
use refrain_core::view::{self, Alive, Kind, StatusWord};
use refrain_core::{LoopId, LoopState, Record};
use refrain_engine::{Entry, Glimpse, RosterNews, Service, Sight};
use rstest::rstest;
use serde_json::{Value, json};

use crate::model::{Art, Asking, Key, Model, Places, Wanted};
use crate::program::{Act, Narrator, Objection, Program};
use crate::update::{Effect, Message, Told, update};

struct Nobody;

impl Program for Nobody {
    fn act(&self, _: &Service, _: &LoopId, _: &Act) -> Result<String, Objection> {
        unreachable!("what is to be done outside is done by nobody here")
    }

    fn narrator(&self) -> Box<dyn Narrator> {
        struct Silent;
        impl Narrator for Silent {
            fn tell(&mut self, _: &Sight) -> String {
                String::new()
            }
            fn state(&self) -> Option<&LoopState> {
                None
            }
        }
        Box::new(Silent)
    }

    fn board(&self, _: &PlanStatus, _: usize, _: Timestamp) -> String {
        String::new()
    }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

const ART: Art = Art { colour: true, blocks: true };

fn glimpse(id: &str, status: StatusWord, iteration: u32) -> Glimpse {
    Glimpse {
        id: id.parse().unwrap(),
        project: "/home/you/parser".into(),
        kind: Kind::Process,
        status,
        iteration,
        max_iterations: Some(20),
        started_at: at(-754),
        updated_at: at(-i64::from(iteration)),
        ended_at: status.has_stopped().then(|| at(-60)),
        cost_usd: Some(0.42),
        gates: vec![("test".into(), true), ("lint".into(), false)],
        said: Some("Now the parser reads dates; two tests are left".into()),
        reason: format!("it is {}", status.as_str()),
        needs: None,
    }
}

fn entries() -> Vec<Entry> {
    let blocked = Glimpse {
        reason: "the agent is not logged in".into(),
        needs: Some("claude /login, then refrain resume add-an-api".into()),
        max_iterations: None,
        cost_usd: None,
        gates: Vec::new(),
        ..glimpse("add-an-api", StatusWord::Blocked, 2)
    };
    let plan = Glimpse { kind: Kind::Plan, ..glimpse("v2-7f3a", StatusWord::Running, 11) };
    let hostile = Glimpse {
        said: Some("\u{1b}[2J\u{1b}]0;owned\u{7}日本語\u{202e} all\nover".into()),
        started_at: at(-20),
        ..glimpse("hostile", StatusWord::Waiting, 20)
    };
    [glimpse("mend-the-parser-of-all-dates", StatusWord::Running, 3), plan, hostile, blocked]
        .into_iter()
        .chain([glimpse("done", StatusWord::Completed, 7), glimpse("old", StatusWord::Cancelled, 9)])
        .map(|glimpse| Entry::Seen(Box::new(glimpse)))
        .chain([Entry::Damaged("torn".into(), "journal.jsonl line 3: this is no event".into())])
        .collect()
}

fn model(art: Art) -> Model {
    let mut model = Model::new(art, Arc::new(Nobody), Some("/home/you/parser".into()), at(0));
    update(&mut model, Message::News(RosterNews::All(entries())));
    model
}

fn drawn(model: &mut Model, width: u16, height: u16) -> TestBackend {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let mut places = Places::default();
    terminal.draw(|frame| places = crate::view::view(model, frame)).unwrap();
    model.drawn(places);
    terminal.backend().clone()
}

fn screen(model: &mut Model, width: u16, height: u16) -> String {
    let text = drawn(model, width, height).to_string();
    let line = |line: &str| line.trim_matches('"').trim_end().to_owned();
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn press(model: &mut Model, keys: &str) -> Vec<Effect> {
    let key = |c| match c {
        '\n' => KeyCode::Enter,
        '\u{1b}' => KeyCode::Esc,
        '\t' => KeyCode::Tab,
        c => KeyCode::Char(c),
    };
    let press = |c| Message::Input(Event::Key(KeyEvent::new(key(c), KeyModifiers::NONE)));
    keys.chars().flat_map(|c| update(model, press(c))).collect()
}

fn mouse(model: &mut Model, kind: MouseEventKind, row: u16) -> Vec<Effect> {
    let event = MouseEvent { kind, column: 3, row, modifiers: KeyModifiers::NONE };
    update(model, Message::Input(Event::Mouse(event)))
}

fn key(id: &str) -> Key {
    Key { project: "/home/you/parser".into(), id: id.parse().unwrap() }
}

/// A loop with two attempts behind it and one that runs.
fn state() -> LoopState {
    let spec = json!({
        "promise": {"text": "COMPLETE", "match": "tag"}, "id": "job", "prompt": "\nMend the parser of dates.\nAll of them.", "iteration_context": true,
        "limits": {"max_iterations": 5}, "project": "/home/you/parser", "worktree": "/home/you/parser",
        "working_dir": "/home/you/parser", "depth": 0, "output_cap": 1024,
        "agent": {
            "kind": "claude", "program": "claude", "args": [], "prompt_mode": "auto", "clean_env": false,
            "env": {}, "permissions": "auto", "output_format": "auto"
        }
    });
    let finished = |code: i32, preview: &str| {
        json!({"type": "attempt.finished", "data": {
            "exit": {"code": code}, "stdout_bytes": 9, "stderr_bytes": 0, "preview": preview,
            "report": {"cost": ["attempt", 0.21], "tokens": ["attempt", {"input": 12_000, "output": 940}], "is_final": true}
        }})
    };
    let begun = |n: u32| {
        [
            json!({"type": "iteration.begun", "data": {"iteration": n}}),
            json!({"type": "attempt.started", "data": {"iteration": n, "attempt": 1}}),
            json!({"type": "attempt.spawned", "data": {"process": {"pid": 2, "start": 2}}}),
        ]
    };
    let mut events: Vec<Value> = vec![
        json!({"type": "loop.started", "data": {"format": 1, "refrain": "0", "spec": spec}}),
        json!({"type": "runner.started", "data": {"runner": {"process": {"pid": 41, "start": 1}, "boot": "b", "host": "box"}}}),
    ];
    events.extend(begun(1));
    events.push(finished(0, "The dates of months are read."));
    events.extend(begun(2));
    events.push(finished(1, "What is a leap year?\u{1b}[31m"));
    events.extend(begun(3));
    let records = (1..).zip(events).map(|(seq, event)| Record {
        seq,
        at: at(-200 + 10 * i64::try_from(seq).unwrap()),
        event: serde_json::from_value(event).unwrap(),
    });
    let records: Vec<_> = records.collect();
    let mut state = LoopState::begin(&records[0]).unwrap();
    records[1..].iter().for_each(|record| state.apply(record).unwrap());
    state
}

fn opened(art: Art) -> Model {
    let mut model = model(art);
    let seen = Entry::Seen(Box::new(glimpse("job", StatusWord::Running, 3)));
    update(&mut model, Message::News(RosterNews::All(vec![seen])));
    assert_eq!(press(&mut model, "\n"), [Effect::Watch(Some((key("job"), false)))]);
    let said = (1..=30).map(|n| format!("\u{1b}[2m→ Bash cargo test {n}\u{1b}[0m\n")).collect::<String>();
    let state = state();
    let told = Told {
        key: key("job"),
        begins: true,
        text: said
            + "I will look at \u{1b}[31mleap\u{1b}[39m years next, as the tests of those fail, and they are the last.\n",
        goal: state.spec.prompt.clone(),
        status: Some(view::status(&state, Alive::DRIVEN)),
    };
    update(&mut model, Message::Told(Box::new(told)));
    model
}

#[rstest]
#[case(80, 24)]
#[case(120, 40)]
#[case(40, 12)]
fn the_list_fits_its_screen(#[case] width: u16, #[case] height: u16) {
    insta::assert_snapshot!(format!("list_{width}x{height}"), screen(&mut model(ART), width, height));
}

#[rstest]
#[case(80, 24)]
#[case(120, 40)]
#[case(40, 12)]
fn a_loop_fits_its_screen(#[case] width: u16, #[case] height: u16) {
    insta::assert_snapshot!(format!("loop_{width}x{height}"), screen(&mut opened(ART), width, height));
}

#[test]
fn help_lies_over_it() {
    let mut model = model(ART);
    press(&mut model, "?");
    insta::assert_snapshot!(screen(&mut model, 60, 20));
    press(&mut model, "q");
    assert_eq!(model.asking, None, "any key goes back, and does nothing else");
}

#[test]
fn without_colour_and_without_blocks_it_says_the_same() {
    let plain = drawn(&mut opened(Art { colour: false, blocks: false }), 80, 24);
    assert!(plain.buffer().content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    assert!(plain.to_string().is_ascii(), "{plain}");
    let coloured = drawn(&mut opened(ART), 80, 24);
    assert!(coloured.buffer().content.iter().any(|cell| cell.fg == Color::Cyan));
    let of_sixteen = |color: Color| !matches!(color, Color::Rgb(..) | Color::Indexed(_));
    assert!(coloured.buffer().content.iter().all(|cell| of_sixteen(cell.fg) && of_sixteen(cell.bg)));
}

#[test]
fn no_size_is_too_small() {
    for width in 0..45 {
        for height in 0..20 {
            for keys in ["", "?", "c", "stell it", "/pars"] {
                for mut model in [model(ART), opened(ART)] {
                    press(&mut model, keys);
                    drawn(&mut model, width, height);
                    press(&mut model, "\u{1b}\tjjkkGg");
                    drawn(&mut model, width, height);
                }
            }
        }
    }
}

#[test]
fn nothing_that_an_agent_said_controls_the_screen() {
    let shown = screen(&mut model(ART), 200, 24);
    assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
    let row = shown.lines().find(|line| line.starts_with("hostile")).unwrap();
    assert!(row.contains("all over") && !row.contains("owned"), "{row}");
}

#[test]
fn a_filter_is_seen_while_it_is_typed_and_gone_with_escape() {
    let mut model = model(ART);
    press(&mut model, "/log");
    let shown = screen(&mut model, 80, 24);
    assert!(
        shown.contains("add-an-api") && !shown.contains("hostile") && shown.contains("filter: log"),
        "{shown}"
    );
    press(&mut model, "\n");
    assert_eq!(press(&mut model, "\n"), [Effect::Watch(Some((key("add-an-api"), false)))]);
    press(&mut model, "\u{1b}");
    assert_eq!(model.list.filter, "log");
    press(&mut model, "\u{1b}");
    assert_eq!(model.list.filter, "");
}

#[test]
fn the_cursor_stays_on_its_loop_whatever_comes_and_goes() {
    let mut model = model(ART);
    drawn(&mut model, 80, 24);
    press(&mut model, "jjj");
    assert_eq!(model.meant(), Some(key("add-an-api")));
    let new = Entry::Seen(Box::new(Glimpse { started_at: at(0), ..glimpse("new", StatusWord::Running, 1) }));
    update(&mut model, Message::News(RosterNews::All(entries().into_iter().chain([new]).collect())));
    assert_eq!((model.meant(), model.list.at()), (Some(key("add-an-api")), 4));
    let done = glimpse("add-an-api", StatusWord::Completed, 3);
    update(&mut model, Message::News(RosterNews::Some(vec![done])));
    assert_eq!(model.glimpse(&key("add-an-api")).unwrap().status, StatusWord::Completed);
}

#[test]
fn a_click_selects_and_opens_what_is_selected_and_the_wheel_moves() {
    let mut model = model(ART);
    drawn(&mut model, 80, 24);
    let down = MouseEventKind::Down(MouseButton::Left);
    assert_eq!(mouse(&mut model, down, 5), []);
    assert_eq!(model.meant(), Some(key("add-an-api")));
    mouse(&mut model, MouseEventKind::ScrollUp, 5);
    assert_eq!(model.list.at(), 0);
    mouse(&mut model, down, 5);
    assert_eq!(mouse(&mut model, down, 5), [Effect::Watch(Some((key("add-an-api"), false)))]);
    assert_eq!(mouse(&mut model, down, 23), [], "the last line is nobody's");
}

#[test]
fn who_scrolls_back_stays_there_until_f() {
    let mut model = opened(ART);
    drawn(&mut model, 80, 24);
    press(&mut model, "kkkk");
    let told = |model: &mut Model| {
        let (key, text) = (key("job"), "news\n".to_owned());
        let told = Told { key, begins: false, text, goal: String::new(), status: None };
        update(model, Message::Told(Box::new(told)));
    };
    told(&mut model);
    let shown = screen(&mut model, 80, 24);
    assert!(!shown.contains("news") && shown.contains("stopped: f follows"), "{shown}");
    press(&mut model, "f");
    assert!(screen(&mut model, 80, 24).contains("news"));
    press(&mut model, "/test 7\n");
    assert!(screen(&mut model, 80, 24).contains("cargo test 7"));
}

#[test]
fn what_cannot_be_undone_is_asked_first() {
    let mut model = opened(ART);
    assert_eq!(press(&mut model, "c"), []);
    assert_eq!(model.asking, Some(Asking::Cancel(key("job"))));
    assert_eq!(press(&mut model, "x"), []);
    assert_eq!(press(&mut model, "cy"), [Effect::Act(key("job"), Act::Cancel { now: false })]);
    assert_eq!(press(&mut model, "Ay"), [Effect::Act(key("job"), Act::Approve { good: true })]);
    assert_eq!(press(&mut model, "Ab"), [Effect::Act(key("job"), Act::Approve { good: false })]);
    assert_eq!(press(&mut model, "Ax"), []);
    assert_eq!(press(&mut model, "ca"), [Effect::Act(key("job"), Act::Cancel { now: true })]);
    assert_eq!(press(&mut model, "sq?p\n"), [Effect::Act(key("job"), Act::Steer { words: "q?p".into() })]);
    assert_eq!(press(&mut model, "s  \n"), [], "nothing is said with nothing");
    assert_eq!(press(&mut model, "pP"), [false, true].map(|now| Effect::Act(key("job"), Act::Pause { now })));
}

#[test]
fn what_is_used_up_is_asked_for_once() {
    let mut model = opened(ART);
    let resume = |granted: &str| Act::Resume { granted: granted.into() };
    assert_eq!(press(&mut model, "r"), [Effect::Act(key("job"), resume(""))]);
    let lacks = || Err(Objection::Lacks("5 iterations are used up".into(), "--max-iterations 10".into()));
    update(&mut model, Message::Done(key("job"), resume(""), lacks()));
    assert!(
        matches!(&model.asking, Some(Asking::Line(Wanted::Grant(..), line)) if line.text() == "--max-iterations 10")
    );
    assert_eq!(press(&mut model, "0\n"), [Effect::Act(key("job"), resume("--max-iterations 100"))]);
    update(
        &mut model,
        Message::Done(key("job"), resume(""), Err(Objection::Refused("it is completed".into()))),
    );
    assert!(screen(&mut model, 80, 24).contains("it is completed"));
}

#[test]
fn a_loop_that_goes_on_again_is_followed_again() {
    let mut model = opened(ART);
    let mut status = view::status(&state(), Alive::NOBODY);
    status.status = StatusWord::Paused;
    let told = Told {
        key: key("job"),
        begins: false,
        text: String::new(),
        goal: String::new(),
        status: Some(status),
    };
    update(&mut model, Message::Told(Box::new(told)));
    let paused = glimpse("job", StatusWord::Paused, 3);
    update(&mut model, Message::News(RosterNews::Some(vec![paused])));
    assert_eq!(update(&mut model, Message::Over(key("job"), None)), []);
    let on = glimpse("job", StatusWord::Running, 3);
    let watched = [Effect::Watch(Some((key("job"), false)))];
    assert_eq!(update(&mut model, Message::News(RosterNews::Some(vec![on.clone()]))), watched);
    assert_eq!(update(&mut model, Message::News(RosterNews::Some(vec![on]))), [], "once");
}

#[test]
fn only_what_goes_on_and_is_seen_needs_a_clock() {
    let mut model = model(ART);
    drawn(&mut model, 80, 24);
    assert!(model.ticks());
    press(&mut model, "/done\n");
    assert!(!model.ticks());
    assert!(opened(ART).ticks());
}

#[test]
fn q_and_control_c_quit() {
    assert_eq!(press(&mut model(ART), "q"), [Effect::Quit]);
    let control_c = Event::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
    assert_eq!(update(&mut model(ART), Message::Input(control_c)), [Effect::Quit]);
    assert_eq!(update(&mut model(ART), Message::Quit), [Effect::Quit]);
}
