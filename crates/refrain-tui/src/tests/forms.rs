//! The form of a new loop, the palette, marks, groups, and light terminals.

use refrain_engine::StartOffer;

use super::*;
use crate::order::Order;

fn offer() -> StartOffer {
    StartOffer {
        folder: "/home/you/parser".into(),
        agents: vec!["claude".into(), "codex".into()],
        gates: vec![("test=cargo test".into(), true), ("lint=cargo clippy".into(), false)],
        is_repository: true,
    }
}

fn form() -> Model {
    let mut model = model(ART);
    assert_eq!(press(&mut model, "n"), [Effect::Offer("/home/you/parser".into())]);
    update(&mut model, Message::Offered("/home/you/parser".into(), Ok(offer())));
    model
}

#[test]
fn a_new_loop_is_asked_for_in_a_form() {
    let mut model = form();
    assert_eq!(press(&mut model, "\n"), []);
    assert!(screen(&mut model, 60, 15).contains("a loop needs a goal"));
    press(&mut model, "Mend it.\t \t \t \t ");
    insta::assert_snapshot!("form_60x15", screen(&mut model, 60, 15));
    let new = NewLoop {
        goal: "Mend it.".into(),
        agent: "codex".into(),
        gates: vec!["lint=cargo clippy".into()],
        place: "branch",
    };
    assert_eq!(press(&mut model, "\n"), [Effect::Start("/home/you/parser".into(), new)]);
    update(&mut model, Message::Started(Ok(key("done"))));
    assert!(screen(&mut model, 80, 24).contains("done runs in a process of its own"));
    assert_eq!(model.meant(), Some(key("done")), "the cursor is on it");
    update(&mut model, Message::Started(Err("no agent".into())));
    assert!(screen(&mut model, 80, 24).contains("no agent"));
}

#[test]
fn a_form_that_was_abandoned_does_not_open() {
    let mut model = model(ART);
    press(&mut model, "n?");
    update(&mut model, Message::Offered("/home/you/parser".into(), Ok(offer())));
    assert_eq!(model.asking, Some(Dialog::Help(0)));
    let mut model = form();
    press(&mut model, "\u{1b}");
    assert_eq!(model.asking, None);
    for (width, height) in [(1, 1), (4, 3), (20, 6), (60, 15), (300, 80)] {
        drawn(&mut form(), width, height);
        let mut marked = self::model(ART);
        press(&mut marked, "  :a");
        drawn(&mut marked, width, height);
    }
}

#[test]
fn the_palette_finds_commands_and_loops() {
    let mut model = model(ART);
    press(&mut model, ":mer");
    insta::assert_snapshot!("palette_60x15", screen(&mut model, 60, 15));
    assert_eq!(press(&mut model, "\n"), []);
    assert_eq!(model.asking, Some(Dialog::Merge(key("add-an-api"))), "as the key does");
    press(&mut model, "\u{1b}");
    let opens = [Effect::Watch(Some((key("mend-the-parser-of-all-dates"), false)))];
    assert_eq!(press(&mut model, ":all dates\n"), opens);
    let control_k = Event::Key(KeyEvent::new(KeyCode::Char('k'), KeyModifiers::CONTROL));
    update(&mut model, Message::Input(control_k));
    assert_eq!(press(&mut model, "new\n"), [Effect::Offer("/home/you/parser".into())]);
    assert_eq!(press(&mut model, ":no such thing\n"), []);
    assert_eq!(model.asking, None);
}

#[test]
fn marked_loops_are_acted_on_together() {
    let mut model = model(ART);
    press(&mut model, "  j ");
    let marked = ["add-an-api", "hostile", "v2-7f3a"].map(key);
    assert_eq!(model.all_meant().len(), 3, "{:?}", model.all_meant());
    insta::assert_snapshot!("marked_60x15", screen(&mut model, 60, 15));
    press(&mut model, "c");
    assert!(screen(&mut model, 80, 24).contains("cancel 3 loops?"));
    let effects = press(&mut model, "y");
    assert_eq!(effects.len(), 3);
    for key in marked {
        assert!(effects.contains(&Effect::Act(key, Act::Cancel { now: false })), "{effects:?}");
    }
    assert!(model.list.marked.is_empty());
    let act = Act::Cancel { now: false };
    update(&mut model, Message::Done(key("old"), act.clone(), Err(Objection::Refused("it is over".into()))));
    update(&mut model, Message::Done(key("done"), act, Ok("asked".into())));
    assert!(screen(&mut model, 80, 24).contains("it is over"), "a refusal stays");
    press(&mut model, "g  \u{1b}");
    assert!(model.list.marked.is_empty(), "esc takes the marks away");
    assert_eq!(press(&mut model, "gp").len(), 1);
}

#[test]
fn in_the_order_of_projects_each_is_named_once() {
    let mut model = Model::new(ART, Arc::new(Nobody), None, at(0));
    let mut other = glimpse("zebra", StatusWord::Running, 1);
    other.brief.project = "/home/you/zoo".into();
    let entries = entries().into_iter().chain([Entry::Seen(Box::new(other))]);
    update(&mut model, Message::News(entries.collect()));
    model.list.order = Order::Project;
    model.list.sort();
    let shown = screen(&mut model, 100, 24);
    assert_eq!((shown.matches(" parser  ").count(), shown.matches(" zoo  ").count()), (1, 1), "{shown}");
}

#[test]
fn on_a_light_background_no_colour_is_too_bright() {
    let has = |light: bool, colour: Color| {
        let screen = drawn(&mut model(Art { light, ..ART }), 80, 24);
        screen.buffer().content.iter().any(|cell| cell.fg == colour)
    };
    assert!(has(false, Color::Yellow) && has(false, Color::Cyan));
    assert!(!has(true, Color::Yellow) && !has(true, Color::Cyan) && has(true, Color::Magenta));
}
