//! The entry under the cursor beside the list, on wide screens.

use super::*;

fn listed() -> Model {
    let mut model = Model::new(ART, Arc::new(Nobody), Some("/home/you/parser".into()), at(0));
    drawn(&mut model, 160, 40);
    let entries = [glimpse("job", StatusWord::Running, 3), glimpse("done", StatusWord::Completed, 7)];
    let entries = entries.map(|glimpse| Entry::Seen(Box::new(glimpse)));
    let effects = update(&mut model, Message::News(entries.into()));
    assert_eq!(effects, [Effect::Preview(Some((key("job"), false)))]);
    model
}

#[test]
fn what_the_loop_under_the_cursor_does_is_shown_beside_the_list() {
    let mut model = listed();
    update(&mut model, Message::Told(Box::new(told())));
    let shown = screen(&mut model, 160, 40);
    assert!(shown.contains("LOOP") && shown.contains("→ Bash cargo test 30"), "{shown}");
    assert_eq!(press(&mut model, "j"), [Effect::Preview(Some((key("done"), false)))]);
    assert!(!screen(&mut model, 160, 40).contains("cargo test 30"), "it is of another loop");
    assert_eq!(press(&mut model, "G"), [], "the cursor stays on it");
}

#[test]
fn what_is_opened_takes_its_place_until_it_is_left() {
    let mut model = listed();
    assert_eq!(press(&mut model, "\n"), [Effect::Watch(Some((key("job"), false)))]);
    let back = [Effect::Watch(None), Effect::Preview(Some((key("job"), false)))];
    assert_eq!(press(&mut model, "\u{1b}"), back);
}

#[test]
fn a_narrow_screen_follows_nothing() {
    let mut model = listed();
    drawn(&mut model, 100, 40);
    assert_eq!(press(&mut model, "j"), [Effect::Preview(None)]);
    assert_eq!(press(&mut model, "k"), []);
}
