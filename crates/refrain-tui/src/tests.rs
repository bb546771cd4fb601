//! Snapshots of screens at several sizes, and the effects of keys and the mouse.

use std::sync::Arc;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use jiff::Timestamp;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;
use refrain_core::r#loop::Grant;
use refrain_core::plan::{PlanLimits, Priority};
use refrain_core::spec::{AgentKind, Millis};
use refrain_core::view::plan::{CurrentTask, PlanStatus, PlanUsage, TaskView, TaskWord, WaveView, WaveWord};
use refrain_core::view::{self, Alive, Kind, StatusWord};
use refrain_core::{AttemptId, LoopId, LoopState, Record};
use refrain_engine::{Brief, Entry, Facts, FollowEvent, GateFact, ListRow, Service, TotalUsage};
use rstest::rstest;
use serde_json::{Value, json};

use crate::model::{Art, Dialog, InputPurpose, Key, LoopText, Model, Places};
use crate::program::{Act, Narrator, NewLoop, Objection, Program};
use crate::update::{Effect, LoopUpdate, Message, update};

mod beside;
mod forms;
mod panels;

struct Nobody;

impl Program for Nobody {
    fn act(&self, _: &Service, _: &LoopId, _: &Act) -> Result<String, Objection> {
        unreachable!("this test does nothing outside")
    }

    fn start(&self, _: &Service, _: &NewLoop) -> Result<LoopId, String> {
        unreachable!("this test does nothing outside")
    }

    fn grant(&self, line: &str) -> Result<(Grant, bool), String> {
        let iterations = line.strip_prefix("--max-iterations ").and_then(|count| count.parse().ok());
        let max_iterations = Some(iterations.ok_or_else(|| format!("{line}: there is no such option"))?);
        Ok((Grant { max_iterations, ..Grant::default() }, false))
    }

    fn narrator(&self) -> Box<dyn Narrator> {
        struct Silent;
        impl Narrator for Silent {
            fn tell(&mut self, _: &FollowEvent) -> String {
                String::new()
            }
            fn state(&self) -> Option<&LoopState> {
                None
            }
        }
        Box::new(Silent)
    }

    fn changes(&self, _: &Service, _: &LoopId) -> Result<String, String> {
        Ok("+new\n".to_owned())
    }

    fn log(&self, _: &Service, _: &LoopId, _: Option<AttemptId>) -> Result<String, String> {
        unreachable!("no outside reading is expected here")
    }

    fn page(&self, _: &str, _: bool) -> bool {
        unreachable!("this test does nothing outside")
    }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

const ART: Art = Art { colour: true, blocks: true, light: false };

fn glimpse(id: &str, status: StatusWord, iteration: u32) -> ListRow {
    let gate = |name: &str, passed| GateFact { name: name.into(), hard: true, passed };
    ListRow {
        brief: Brief {
            id: id.parse().unwrap(),
            kind: Kind::Process,
            plan: None,
            status,
            verified: None,
            iteration,
            max_iterations: Some(20),
            updated_at: at(-i64::from(iteration)),
            project: "/home/you/parser".into(),
            reason: format!("it is {}", status.as_str()),
            object: None,
            iterations: Vec::new(),
            copy: None,
            stamp: None,
        },
        facts: Facts {
            started_at: at(-754),
            // A running loop has worked since its last event, too.
            active_ms: Some(Millis(match status {
                StatusWord::Running => 1000 * (754 - u64::from(iteration)),
                _ => 694_000,
            })),
            usage: usage(json!({"cost_usd": 0.42})),
            gates: vec![gate("test", true), gate("lint", false)],
            ..Facts::default()
        },
        said: Some("Now the parser reads dates; two tests are left".into()),
        goal: "Read dates of all calendars".into(),
    }
}

fn usage(fields: Value) -> TotalUsage {
    serde_json::from_value(fields).unwrap()
}

fn plan_row(id: &str, iteration: u32) -> ListRow {
    let mut row = glimpse(id, StatusWord::Running, iteration);
    row.brief.kind = Kind::Plan;
    row
}

fn entries() -> Vec<Entry> {
    let mut blocked = glimpse("add-an-api", StatusWord::Blocked, 2);
    blocked.brief.reason = "the agent is not logged in".into();
    blocked.brief.max_iterations = None;
    blocked.facts.needs = Some("claude /login, then refrain resume add-an-api".into());
    blocked.facts.usage = usage(json!({"cost_at_least": true}));
    blocked.facts.waits_for = Some("login".into());
    blocked.facts.gates = Vec::new();
    let plan = plan_row("v2-7f3a", 11);
    let mut hostile = glimpse("hostile", StatusWord::Waiting, 20);
    hostile.said = Some("\u{1b}[2J\u{1b}]0;owned\u{7}日本語\u{202e} all\nover".into());
    hostile.facts.started_at = at(-20);
    hostile.facts.active_ms = Some(Millis(20_000));
    [glimpse("mend-the-parser-of-all-dates", StatusWord::Running, 3), plan, hostile, blocked]
        .into_iter()
        .chain([glimpse("done", StatusWord::Completed, 7), glimpse("old", StatusWord::Cancelled, 9)])
        .map(|glimpse| Entry::Seen(Box::new(glimpse)))
        .chain([Entry::Damaged("torn".into(), "journal.jsonl line 3: this is no event".into())])
        .collect()
}

/// The list, with this row in the place of that of the same loop, in the order of the engine.
fn renewed(model: &Model, row: ListRow) -> Message {
    let renew = |entry: &Entry| match entry {
        Entry::Seen(seen) if seen.brief.id == row.brief.id => Entry::Seen(Box::new(row.clone())),
        other => other.clone(),
    };
    Message::News(model.list.entries.iter().rev().map(renew).collect())
}

fn model(art: Art) -> Model {
    let mut model = Model::new(art, Arc::new(Nobody), Some("/home/you/parser".into()), at(0));
    update(&mut model, Message::News(entries()));
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

/// A loop with two finished attempts and one that runs.
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
    update(&mut model, Message::News(vec![seen]));
    assert_eq!(press(&mut model, "\n"), [Effect::Watch(Some((key("job"), false)))]);
    update(&mut model, Message::Told(Box::new(told())));
    model
}

/// An update of the loop `job`.
fn told() -> LoopUpdate {
    let said = (1..=30).map(|n| format!("\u{1b}[2m→ Bash cargo test {n}\u{1b}[0m\n")).collect::<String>();
    let state = state();
    LoopUpdate {
        key: key("job"),
        begins: true,
        text: said
            + "I will look at \u{1b}[31mleap\u{1b}[39m years next, as the tests of those fail, and they are the last.\n",
        goal: state.spec.prompt.clone(),
        status: Some(view::status(&state, Alive::DRIVEN)),
    }
}

#[rstest]
#[case(80, 24)]
#[case(120, 40)]
#[case(60, 15)]
#[case(300, 80)]
fn the_list_fits_its_screen(#[case] width: u16, #[case] height: u16) {
    insta::assert_snapshot!(format!("list_{width}x{height}"), screen(&mut model(ART), width, height));
}

#[rstest]
#[case(80, 24)]
#[case(120, 40)]
#[case(60, 15)]
#[case(300, 80)]
fn a_loop_fits_its_screen(#[case] width: u16, #[case] height: u16) {
    insta::assert_snapshot!(format!("loop_{width}x{height}"), screen(&mut opened(ART), width, height));
}

/// A plan with one finished wave and two more: a task at work, one that is blocked, one that waits for that.
fn plan() -> PlanStatus {
    let task = |id: &str, wave: u32, status: TaskWord, after: &[&str]| TaskView {
        id: id.parse().unwrap(),
        title: format!("Do part {id} of the work"),
        wave: Some(wave),
        status,
        complexity: 3,
        priority: Priority::default(),
        dependencies: after.iter().map(|id| id.parse().unwrap()).collect(),
        waits_for: Vec::new(),
        rounds: 1,
        iterations: 2,
        id_of_loop: (wave < 3).then(|| format!("x-{id}").parse().unwrap()),
        slot: None,
        commit: None,
        reason: (status == TaskWord::Blocked).then(|| "its gate test fails again and again".to_owned()),
        left_out: Vec::new(),
        settled_at: None,
        cost_usd: Some(0.2),
        at_least: false,
    };
    let wave = |wave: u32, status: WaveWord, done: usize, of: &[&str]| WaveView {
        wave,
        status,
        tasks_total: of.len(),
        tasks_done: done,
        commit: None,
        completed_at: None,
        tasks: of.iter().map(|id| id.parse().unwrap()).collect(),
    };
    PlanStatus {
        schema: 1,
        id: "x".parse().unwrap(),
        tag: "x".into(),
        kind: Kind::Plan,
        status: StatusWord::Running,
        verified: Some(false),
        reason: "wave 2 of 3: 2 is running".into(),
        needs: None,
        waits_for: None,
        agent: AgentKind::Claude,
        model: None,
        command: vec!["claude".into()],
        verification: vec!["true".into()],
        project: "/home/you/parser".into(),
        tasks_file: "tasks.json".into(),
        branch: None,
        base: None,
        tip: None,
        started_at: at(-754),
        updated_at: at(-3),
        ended_at: None,
        active: Millis(751_000),
        jobs: 2,
        pipeline: false,
        tune: false,
        limits: PlanLimits { per_task: 3, total: 40, max_cost: None, max_duration: None },
        usage: PlanUsage {
            iterations_used: 4,
            iterations_granted: 40,
            iterations_reserved: 0,
            cost_usd: Some(0.42),
            at_least: false,
        },
        tasks_total: 4,
        tasks_done: 1,
        waves: vec![
            wave(1, WaveWord::Complete, 1, &["1"]),
            wave(2, WaveWord::InProgress, 0, &["2", "3"]),
            wave(3, WaveWord::Pending, 0, &["4"]),
        ],
        tasks: vec![
            task("1", 1, TaskWord::Done, &[]),
            task("2", 2, TaskWord::InProgress, &["1"]),
            task("3", 2, TaskWord::Blocked, &["1"]),
            task("4", 3, TaskWord::WaitingOnBlocked, &["2", "3"]),
        ],
        current: vec![CurrentTask {
            task: "2".parse().unwrap(),
            title: "Do part 2 of the work".into(),
            complexity: 3,
            id_of_loop: "x-2".parse().unwrap(),
            round: 1,
            slot: 1,
            started_at: at(-65),
            iteration: 2,
            attempt: 1,
            max_iterations: 10,
            status: Some(StatusWord::Running),
            reason: Some("attempt 2 is running".into()),
            wait: None,
            preview: Some("Two tests are left".into()),
            usage: view::Usage::default(),
        }],
        blocked: Vec::new(),
        wave_commits: Vec::new(),
        behind: None,
        missing: Vec::new(),
        branches: Vec::new(),
        uncommitted: Vec::new(),
        estimate: None,
        tasks_refused: None,
        runner: None,
    }
}

fn opened_plan(art: Art) -> Model {
    let mut model = model(art);
    let seen = plan_row("x", 4);
    update(&mut model, Message::News(vec![Entry::Seen(Box::new(seen))]));
    assert_eq!(press(&mut model, "\n"), [Effect::Watch(Some((key("x"), true)))]);
    update(&mut model, Message::Plan(key("x"), Box::new(plan())));
    model
}

#[rstest]
#[case(80, 24)]
#[case(120, 40)]
#[case(60, 15)]
#[case(300, 80)]
fn a_plan_fits_its_screen(#[case] width: u16, #[case] height: u16) {
    insta::assert_snapshot!(format!("plan_{width}x{height}"), screen(&mut opened_plan(ART), width, height));
}

#[test]
fn a_plan_asks_nothing_so_no_answer_is_asked_for() {
    let mut model = opened_plan(ART);
    for _ in ["opened", "in the list"] {
        assert_eq!((press(&mut model, "a"), &model.asking), (Vec::new(), &None));
        let shown = screen(&mut model, 100, 24);
        assert!(shown.contains("plan x asks nothing; s sends a text to its agents, r resumes it"), "{shown}");
        press(&mut model, "h");
    }
}

#[test]
fn an_answer_is_asked_for_only_if_the_loop_asks() {
    let mut model = opened(ART);
    for _ in ["opened", "in the list"] {
        assert_eq!((press(&mut model, "a"), &model.asking), (Vec::new(), &None));
        let shown = screen(&mut model, 100, 24);
        assert!(shown.contains("job asks nothing and waits for no approval; s sends a text"), "{shown}");
        press(&mut model, "h");
    }
    let mut model = opened(ART);
    let mut asking = told();
    asking.status.as_mut().unwrap().question = Some("A or B?".into());
    update(&mut model, Message::Told(Box::new(asking)));
    assert_eq!(press(&mut model, "aB\n"), [Effect::Act(key("job"), Act::Answer { words: "B".into() })]);
}

#[test]
fn the_critical_path_of_a_plan_is_shown_on_a_low_screen_too() {
    let mut model = opened_plan(ART);
    press(&mut model, "\t");
    let shown = screen(&mut model, 40, 12);
    assert!(
        shown.contains("critical path  2 → 4")
            && shown.contains("Wave 1  1/1")
            && shown.contains("▸● 2 2/10"),
        "{shown}"
    );
}

#[test]
fn the_screen_is_the_same_after_a_resize_and_back() {
    for make in [model as fn(Art) -> Model, opened, opened_plan] {
        let mut model = make(ART);
        let before = screen(&mut model, 80, 24);
        for (width, height) in [(40, 12), (200, 60), (3, 2), (80, 24)] {
            screen(&mut model, width, height);
        }
        assert_eq!(screen(&mut model, 80, 24), before);
    }
}

#[test]
fn an_attempt_is_opened_and_its_log_is_searched_and_left() {
    let mut model = opened(ART);
    drawn(&mut model, 80, 24);
    assert_eq!(press(&mut model, "\n"), [], "the activity has the keys");
    assert_eq!(press(&mut model, "\t\n"), [], "what the last attempt says is what is seen");
    let second = AttemptId { iteration: 2, attempt: 1 };
    let read = [Effect::Watch(None), Effect::Read(key("job"), LoopText::Output(second))];
    assert_eq!(press(&mut model, "\tk\n"), read);
    let printed = (1..=40).map(|n| format!("line {n}\n")).collect();
    update(&mut model, Message::Printed(key("job"), LoopText::Output(second), Ok(printed)));
    let shown = screen(&mut model, 80, 24);
    assert!(shown.starts_with("─ Log of job, iteration 2 ") && shown.contains("line 40"), "{shown}");
    press(&mut model, "g");
    assert!(screen(&mut model, 80, 24).contains("line 1\n"));
    press(&mut model, "/line 33\n");
    assert!(screen(&mut model, 80, 24).contains("line 33"));
    assert_eq!(model.meant(), Some(key("job")), "verbs are about its loop");
    assert_eq!(press(&mut model, "\u{1b}"), [Effect::Watch(Some((key("job"), false)))]);
    // By the mouse: a click selects, another opens.
    drawn(&mut model, 80, 24);
    let row = model.places.attempts.y;
    let down = MouseEventKind::Down(MouseButton::Left);
    assert_eq!(mouse(&mut model, down, row), []);
    let first = AttemptId { iteration: 1, attempt: 1 };
    assert_eq!(
        mouse(&mut model, down, row),
        [Effect::Watch(None), Effect::Read(key("job"), LoopText::Output(first))]
    );
}

#[test]
fn a_long_refusal_is_read_to_its_end_and_keys_are_shown_whole() {
    let mut model = opened(ART);
    let why = "job is paused, and what it is granted is used up: give it more, as in refrain resume job --max-iterations 40";
    let refused = Err(Objection::Refused(why.into()));
    update(&mut model, Message::Done(key("job"), Act::Pause { now: false }, refused));
    let shown = screen(&mut model, 40, 12);
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.ends_with(why), "{shown}");
    press(&mut model, "k");
    let last = |model: &mut Model, width| screen(model, width, 12).lines().last().unwrap().to_owned();
    assert_eq!(last(&mut model, 40), "? help  esc back  q quit  tab  f follow");
    assert_eq!(last(&mut model, 28), "? help  esc back  q quit");
}

#[rstest]
#[case(Kind::Plan, StatusWord::Running, &["c cancel"], &["x archive"])]
#[case(Kind::Plan, StatusWord::Completed, &["o order"], &["c cancel", "x archive"])]
#[case(Kind::Process, StatusWord::Completed, &["x archive"], &["c cancel", "r resume"])]
#[case(Kind::Process, StatusWord::Paused, &["r resume", "c cancel", "x archive"], &[])]
fn the_keys_shown_apply_to_what_the_cursor_is_on(
    #[case] kind: Kind,
    #[case] status: StatusWord,
    #[case] shown: &[&str],
    #[case] omitted: &[&str],
) {
    let mut model = model(ART);
    let mut row = glimpse("x", status, 4);
    row.brief.kind = kind;
    update(&mut model, Message::News(vec![Entry::Seen(Box::new(row))]));
    let screen = screen(&mut model, 200, 24);
    let keys = screen.lines().last().unwrap();
    assert!(shown.iter().all(|key| keys.contains(key)), "{keys}");
    assert!(!omitted.iter().any(|key| keys.contains(key)), "{keys}");
}

#[test]
fn help_lies_over_it() {
    let mut model = model(ART);
    press(&mut model, "?");
    insta::assert_snapshot!(screen(&mut model, 60, 20));
    press(&mut model, "q");
    assert_eq!(model.asking, None, "any key goes back, and does nothing else");
    press(&mut model, "?");
    let low = screen(&mut model, 60, 15);
    assert!(low.contains("quit; loops go on") && !low.contains("draw the screen anew"), "{low}");
    press(&mut model, "   j");
    let end = screen(&mut model, 60, 15);
    assert!(!end.contains("quit; loops go on") && end.contains("draw the screen anew"), "{end}");
    let cells = drawn(&mut model, 60, 15).buffer().clone();
    assert!(cells.content[..60].iter().all(|cell| cell.modifier.is_empty()), "nothing shines through");
    assert_eq!((press(&mut model, "q"), &model.asking), (Vec::new(), &None));
}

#[test]
fn without_colour_and_without_blocks_it_says_the_same() {
    let plain = drawn(&mut opened(Art { colour: false, blocks: false, light: false }), 80, 24);
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
                for mut model in [model(ART), opened(ART), opened_plan(ART)] {
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
    assert_eq!(model.meant(), Some(key("v2-7f3a")));
    let mut new = glimpse("new", StatusWord::Running, 1);
    (new.facts.started_at, new.facts.active_ms) = (at(0), Some(Millis(0)));
    let new = Entry::Seen(Box::new(new));
    update(&mut model, Message::News(entries().into_iter().chain([new]).collect()));
    assert_eq!((model.meant(), model.list.at()), (Some(key("v2-7f3a")), 4));
    let done = glimpse("v2-7f3a", StatusWord::Completed, 3);
    let news = renewed(&model, done);
    update(&mut model, news);
    assert_eq!(model.glimpse(&key("v2-7f3a")).unwrap().brief.status, StatusWord::Completed);
    let news = renewed(&model, glimpse("hostile", StatusWord::Blocked, 1));
    update(&mut model, news);
    let first: Vec<_> =
        model.list.shown().into_iter().take(2).map(|entry| crate::model::place(entry).1).collect();
    assert_eq!(first, ["hostile", "add-an-api"], "what needs you is first as soon as it does");
    assert_eq!(model.meant(), Some(key("v2-7f3a")));
    press(&mut model, "o");
    let places = |model: &Model| model.list.entries.iter().map(crate::model::place).collect::<Vec<_>>();
    let before = places(&model);
    let news = renewed(&model, glimpse("old", StatusWord::Cancelled, 30));
    update(&mut model, news);
    assert_eq!(places(&model), before, "the last touched is first when the list is sorted");
}

#[test]
fn a_click_selects_a_second_opens_and_the_wheel_moves() {
    let mut model = model(ART);
    drawn(&mut model, 80, 24);
    let down = MouseEventKind::Down(MouseButton::Left);
    assert_eq!(mouse(&mut model, down, 5), []);
    assert_eq!(model.meant(), Some(key("v2-7f3a")));
    mouse(&mut model, MouseEventKind::ScrollUp, 5);
    assert_eq!(model.list.at(), 0);
    mouse(&mut model, down, 5);
    assert_eq!(mouse(&mut model, down, 5), [Effect::Watch(Some((key("v2-7f3a"), true)))]);
    assert_eq!(mouse(&mut model, down, 23), [], "the last line belongs to no loop");
}

#[test]
fn a_scrolled_pane_stays_until_it_follows_again() {
    let mut model = opened(ART);
    drawn(&mut model, 80, 24);
    press(&mut model, "kkkk");
    let told = |model: &mut Model| {
        let (key, text) = (key("job"), "news\n".to_owned());
        let told = LoopUpdate { key, begins: false, text, goal: String::new(), status: None };
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
fn a_yes_is_to_the_tree_that_was_shown_when_it_was_asked_for() {
    let shows = |model: &mut Model, tree: &str| {
        let mut status = view::status(&state(), Alive::DRIVEN);
        let (state, tree) = (view::ApprovalWord::Awaited, Some(tree.to_owned()));
        status.approval = Some(view::Approval { state, at: None, iteration: 2, tree });
        let (key, text, goal) = (key("job"), String::new(), String::new());
        let told = LoopUpdate { key, begins: false, text, goal, status: Some(status) };
        update(model, Message::Told(Box::new(told)));
    };
    let mut model = opened(ART);
    shows(&mut model, "1111");
    assert_eq!(press(&mut model, "A"), []);
    // Another waits by now.
    shows(&mut model, "2222");
    assert_eq!(press(&mut model, "y"), [Effect::Act(key("job"), Act::Approve { tree: Some("1111".into()) })]);
    // Nothing of it is shown in the list.
    let mut model = self::model(ART);
    let mut waiting = glimpse("job", StatusWord::Blocked, 3);
    waiting.facts.waits_for = Some("approval".into());
    update(&mut model, Message::News(vec![Entry::Seen(Box::new(waiting))]));
    assert!(screen(&mut model, 80, 24).contains("needs approval"));
    assert_eq!(press(&mut model, "a"), [Effect::Watch(Some((key("job"), false)))]);
    assert_eq!((press(&mut model, "ay"), &model.asking), (Vec::new(), &None), "it is not read yet");
    press(&mut model, "a");
    shows(&mut model, "3333");
    assert_eq!(press(&mut model, "y"), [Effect::Act(key("job"), Act::Approve { tree: Some("3333".into()) })]);
}

#[test]
fn an_action_that_cannot_be_undone_asks_first() {
    let mut model = opened(ART);
    assert_eq!(press(&mut model, "c"), []);
    assert_eq!(model.asking, Some(Dialog::Cancel(vec![key("job")])));
    assert_eq!(press(&mut model, "x"), []);
    assert_eq!(press(&mut model, "cy"), [Effect::Act(key("job"), Act::Cancel { now: false })]);
    assert_eq!((press(&mut model, "A"), &model.asking), (Vec::new(), &None), "nothing waits for approval");
    let mut waiting = told();
    let status = waiting.status.as_mut().unwrap();
    let (state, tree) = (view::ApprovalWord::Awaited, None);
    status.approval = Some(view::Approval { state, at: None, iteration: 2, tree });
    update(&mut model, Message::Told(Box::new(waiting)));
    assert_eq!(press(&mut model, "Ay"), [Effect::Act(key("job"), Act::Approve { tree: None })]);
    let back = |words: &str| [Effect::Act(key("job"), Act::SendBack { words: words.into() })];
    assert_eq!(press(&mut model, "Ab\n"), back(""));
    assert_eq!(press(&mut model, "Abno cake\n"), back("no cake"));
    assert_eq!(press(&mut model, "Ax"), []);
    assert_eq!(press(&mut model, "ca"), [Effect::Act(key("job"), Act::Cancel { now: true })]);
    assert_eq!(press(&mut model, "sq?p\n"), [Effect::Act(key("job"), Act::Steer { words: "q?p".into() })]);
    assert_eq!(press(&mut model, "s  \n"), [], "nothing is said with nothing");
    assert_eq!(press(&mut model, "pP"), [false, true].map(|now| Effect::Act(key("job"), Act::Pause { now })));
}

#[test]
fn a_used_up_limit_is_asked_for_once() {
    let mut model = opened(ART);
    let resume =
        |max_iterations| Act::Resume { grant: Grant { max_iterations, ..Grant::default() }, now: false };
    assert_eq!(press(&mut model, "r"), [Effect::Act(key("job"), resume(None))]);
    let lacks = || Err(Objection::Lacks("5 iterations are used up".into(), "--max-iterations 10".into()));
    update(&mut model, Message::Done(key("job"), resume(None), lacks()));
    assert!(
        matches!(&model.asking, Some(Dialog::Line(InputPurpose::Grant(..), line)) if line.text() == "--max-iterations 10")
    );
    assert_eq!(press(&mut model, "0\n"), [Effect::Act(key("job"), resume(Some(100)))]);
    update(&mut model, Message::Done(key("job"), resume(None), lacks()));
    assert_eq!(press(&mut model, "x\n"), []);
    assert!(screen(&mut model, 80, 24).contains("there is no such option"));
    update(
        &mut model,
        Message::Done(key("job"), resume(None), Err(Objection::Refused("it is completed".into()))),
    );
    assert!(screen(&mut model, 80, 24).contains("it is completed"));
}

#[test]
fn a_continued_loop_is_followed_again() {
    let mut model = opened(ART);
    let mut status = view::status(&state(), Alive::NO_RUNNER);
    status.status = StatusWord::Paused;
    let told = LoopUpdate {
        key: key("job"),
        begins: false,
        text: String::new(),
        goal: String::new(),
        status: Some(status),
    };
    update(&mut model, Message::Told(Box::new(told)));
    let news = |status, updated_at| {
        let mut row = glimpse("job", status, 3);
        row.brief.updated_at = updated_at;
        Message::News(vec![Entry::Seen(Box::new(row))])
    };
    let then = state().updated_at;
    update(&mut model, news(StatusWord::Paused, then));
    assert_eq!(update(&mut model, Message::Over(key("job"), None)), []);
    let watched = [Effect::Watch(Some((key("job"), false)))];
    let later = then + std::time::Duration::from_millis(1);
    // In any status: it may have stopped again before the list was read.
    assert_eq!(update(&mut model, news(StatusWord::Blocked, later)), watched);
    assert_eq!(update(&mut model, news(StatusWord::Blocked, later)), [], "once");
}

#[test]
fn a_loop_that_is_opened_before_it_is_there_is_seen_once_it_is() {
    let mut model = opened_plan(ART);
    let watched = [Effect::Watch(Some((key("x-2"), false)))];
    assert_eq!(press(&mut model, "j\n"), watched);
    let gone = Message::Over(key("x-2"), Some("no loop x-2".into()));
    assert_eq!(update(&mut model, gone), [], "a missing loop is not read again and again");
    let news = |id: &str| {
        let seen = glimpse(id, StatusWord::Running, 1);
        Message::News(vec![Entry::Seen(Box::new(seen))])
    };
    assert_eq!(update(&mut model, news("another")), []);
    assert_eq!(update(&mut model, news("x-2")), watched);
}

#[test]
fn only_visible_running_loops_need_a_clock() {
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

#[test]
fn texts_are_opened_and_a_merge_is_asked_for_from_the_list_and_its_order_is_chosen() {
    let mut model = model(ART);
    let id = |model: &Model| model.meant().unwrap().id.to_string();
    assert_eq!(id(&model), "add-an-api", "what needs you is first");
    let watch = || Effect::Watch(None);
    assert_eq!(press(&mut model, "d"), [watch(), Effect::Read(key("add-an-api"), LoopText::Changes)]);
    let printed = Message::Printed(key("add-an-api"), LoopText::Changes, Ok("+new\n".into()));
    update(&mut model, printed);
    let shown = screen(&mut model, 80, 24);
    assert!(shown.starts_with("─ Changes of add-an-api ") && shown.contains("+new"), "{shown}");
    assert_eq!(press(&mut model, "d"), [], "it is open already");
    assert_eq!(
        press(&mut model, "\u{1b}l")[1..],
        [watch(), Effect::Read(key("add-an-api"), LoopText::LatestOutput)]
    );
    press(&mut model, "\u{1b}");
    assert_eq!(press(&mut model, "mn"), []);
    assert_eq!(press(&mut model, "ms"), [Effect::Act(key("add-an-api"), Act::Merge { squash: true })]);
    assert_eq!(press(&mut model, "xy"), [Effect::Act(key("add-an-api"), Act::Archive)]);
    press(&mut model, "ooog");
    assert_eq!(model.said.as_ref().map(|(words, _)| words.as_str()), None);
    assert_eq!(id(&model), "add-an-api", "by name");
    press(&mut model, "j");
    assert_eq!(id(&model), "done");
}
