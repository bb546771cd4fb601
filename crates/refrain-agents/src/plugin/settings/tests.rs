use proptest::prelude::*;
use refrain_core::splice::undo;
use rstest::rstest;

use super::*;

fn hook(event: &str, words: &str) -> Edit {
    Edit {
        path: vec!["hooks".to_owned(), event.to_owned()],
        value: format!(r#"{{ "hooks": [{{ "command": "refrain {words}", "timeout": 60 }}] }}"#),
        kind: Kind::Element(words.to_owned()),
    }
}

fn hooks() -> Vec<Edit> {
    vec![hook("Stop", "hook stop"), hook("SessionStart", "hook session-start")]
}

fn switches() -> Vec<Edit> {
    let edit = |path: [&str; 2], value: &str, kind| Edit {
        path: path.map(str::to_owned).to_vec(),
        value: value.to_owned(),
        kind,
    };
    vec![
        edit(["markets", "refrain"], r#"{ "path": "/d" }"#, Kind::Key),
        edit(["on", "refrain@refrain"], "true", Kind::SharedKey),
    ]
}

const ODD: &[&str] = &[
    "",
    "\n",
    "{}",
    "{}\n",
    "{ }",
    "{\n}\n",
    "\u{feff}{}",
    "\u{feff}{\r\n\t\"a\": 1\r\n}\r\n",
    "{\n  // nothing yet\n}\n",
    "{ /* nothing */ }",
    "{\"a\":1}",
    "{\"a\":1,}",
    "{\n    \"a\": [1, 2],\n    \"b\": \"}\"\n}",
    "{\n\n  \"a\": 1\n\n}\n\n",
    "{\n\t\"a\": 1, // one\n\t\"b\": 2 // two\n\t// the end\n}\n",
    "{\n  \"a\": 1 /* one */ ,\n}\n",
    "{\r\n  \"hooks\": {}\r\n}",
    "{\"hooks\": {\"Stop\": []}}",
    "{\n  \"hooks\": {\n    \"Stop\": [\n      { \"hooks\": [{ \"command\": \"mine\" }] }\n    ]\n  },\n  \"z\": null\n}\n",
    "{\n  \"hooks\": {\n    \"Stop\": [\n      { \"hooks\": [{ \"command\": \"mine\" }] }, // mine\n    ],\n  },\n}",
    "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"command\":\"mine\"}]}],\"SessionStart\":[]},\"on\":{\"x@y\":true}}",
    "// mine\n{\n  \"on\": { \"x@y\": false },\n  \"markets\": {\n  }\n}\n// the end",
    "{\"a\":\"\\u00e9 \u{e9} \\\" { [\",\"on\":{},\"markets\":{ }}",
    "  {\"a\" : 1}  ",
    "{\n  \"on\": {\"refrain@refrain\": false}\n}\n",
    "{\n  \"hooks\": {\n    \"Stop\": [\n      { \"hooks\": [{ \"command\": \"refrain hook stop\" }, { \"command\": \"mine\" }] }\n    ]\n  }\n}\n",
    "{\"a\": 1 // no end\n}",
];

fn said(text: &str) -> serde_json::Value {
    let document = Document::read(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    document.value.map_or_else(|| serde_json::json!({}), serde_json::Value::from)
}

/// Whether one text is the other with insertions only.
fn is_within(old: &str, new: &str) -> bool {
    let mut rest = new.chars();
    old.chars().all(|c| rest.any(|found| found == c))
}

/// Adds the edits and removes them in both ways.
fn there_and_back(text: &str, edits: &[Edit]) {
    let (with, splices) = put(text, edits).unwrap_or_else(|error| panic!("{error}: {text}"));
    for edit in edits {
        assert_eq!(look(&with, edit), Ok(EntryState::Same), "{with}");
    }
    assert_eq!(put(&with, edits).unwrap(), (with.clone(), vec![]), "twice is once");
    assert_eq!(undo(&with, &splices).as_deref(), Some(text));
    let has_been = text.contains("refrain@refrain");
    assert!(has_been || is_within(text, &with), "{text}\n{with}");
    assert!(has_been || splices.iter().all(|splice| splice.old.is_empty()));
    // All else is unchanged, and removing from a changed text leaves nothing of ours.
    let taken = take(&with, edits).unwrap();
    for edit in edits {
        assert_eq!(look(&taken, edit), Ok(EntryState::Nothing), "{taken}");
    }
    let without_empty = |mut value: serde_json::Value| {
        for key in ["hooks", "markets", "on"] {
            if let Some(inner) = value.get_mut(key).and_then(serde_json::Value::as_object_mut) {
                inner.retain(|key, value| key != "refrain@refrain" && value != &serde_json::json!([]));
            }
        }
        let object = value.as_object_mut().unwrap();
        object.retain(|_, value| value != &serde_json::json!({}));
        value
    };
    assert_eq!(without_empty(said(&taken)), without_empty(said(text)), "{text}\n{with}\n{taken}");
}

#[test]
fn edits_of_odd_settings_are_undone_to_the_byte() {
    for text in ODD {
        there_and_back(text, &hooks());
        there_and_back(text, &switches());
        there_and_back(text, &[hooks(), switches()].concat());
    }
}

#[rstest]
#[case::a_foreign_key("{\"markets\": {\"refrain\": {\"source\": \"theirs\"}}}")]
#[case::switched_off("{\"on\": {\"refrain@refrain\": false}}")]
#[case::empty_lists("{\"hooks\": {\"Stop\": []}, \"markets\": {}}")]
fn settings_that_the_plugin_did_not_make_are_kept(#[case] text: &str) {
    assert_eq!(take(text, &[hooks(), switches()].concat()).unwrap(), text);
}

#[rstest]
#[case("", "{\n  \"on\": {\n    \"refrain@refrain\": true\n  }\n}\n")]
#[case("{}", "{\n  \"on\": {\n    \"refrain@refrain\": true\n  }\n}")]
#[case("{\"a\":1}", "{\"a\":1, \"on\": {\"refrain@refrain\": true}}")]
#[case("{\n\t\"a\": 1\n}\n", "{\n\t\"a\": 1,\n\t\"on\": {\n\t\t\"refrain@refrain\": true\n\t}\n}\n")]
#[case(
    "{\r\n \"on\": {\r\n  \"x\": 1, // one\r\n },\r\n}",
    "{\r\n \"on\": {\r\n  \"x\": 1, // one\r\n  \"refrain@refrain\": true,\r\n },\r\n}"
)]
#[case(
    "{\n  \"on\": {\"refrain@refrain\": false} // off\n}",
    "{\n  \"on\": {\"refrain@refrain\": true} // off\n}"
)]
#[case("{\"a\": 1 // one\n}", "{\"a\": 1, // one\n  \"on\": {\n    \"refrain@refrain\": true\n  }\n}")]
fn an_entry_is_added_in_the_format_of_the_file(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(put(text, &switches()[1..]).unwrap().0, expected);
}

#[test]
fn a_hook_stands_among_those_of_others() {
    let text = "{\n  \"hooks\": {\n    \"Stop\": [\n      { \"hooks\": [{ \"command\": \"mine\" }] }\n    ]\n  }\n}\n";
    let expected = "{\n  \"hooks\": {\n    \"Stop\": [\n      { \"hooks\": [{ \"command\": \"mine\" }] },\n      \
        { \"hooks\": [{ \"command\": \"refrain hook stop\", \"timeout\": 60 }] }\n    ],\n    \"SessionStart\": [\n      \
        { \"hooks\": [{ \"command\": \"refrain hook session-start\", \"timeout\": 60 }] }\n    ]\n  }\n}\n";
    let (with, _) = put(text, &hooks()).unwrap();
    assert_eq!(with, expected);
    assert_eq!(take(&with, &hooks()).unwrap(), text);
    // An older entry of ours is updated in place.
    let older = with.replace("60", "5");
    assert_eq!(look(&older, &hooks()[0]), Ok(EntryState::Other));
    assert_eq!(put(&older, &hooks()).unwrap().0, with);
}

#[rstest]
#[case("{\"a\": 1 // one\n}", "{\"a\": 1 // one\n}")]
#[case("{\n  \"a\": 1, // one\n}\n", "{\n  \"a\": 1, // one\n}\n")]
#[case("{\"a\":1}", "{\"a\":1}")]
#[case("{\"a\":1,}", "{\"a\":1,}")]
#[case("{ }", "{}")]
#[case("{\r\n\t\"a\": [\r\n\t]\r\n}", "{\r\n\t\"a\": [\r\n\t]\r\n}")]
#[case("{\n  // nothing\n}", "{\n  // nothing\n}")]
fn a_removed_entry_leaves_no_gap(#[case] text: &str, #[case] expected: &str) {
    let edits = [hooks(), switches()].concat();
    let (with, _) = put(text, &edits).unwrap();
    assert_eq!(take(&with, &edits).unwrap(), expected, "{with}");
    // Text that was added after it stays.
    let more = with.trim_end().strip_suffix('}').unwrap().trim_end();
    let more = format!("{},\n  \"z\": 1\n}}", more.trim_end_matches(','));
    let taken = take(&more, &edits).unwrap();
    assert_eq!(said(&taken)["z"], 1);
    assert!(!taken.contains("\n\n") && !taken.lines().any(|line| line.ends_with(' ')), "{taken:?}");
}

#[rstest]
#[case("[]", SettingsError::NoObject(vec![]), "the whole is no object")]
#[case("// nothing", SettingsError::NoObject(vec![]), "the whole is no object")]
#[case("{\"hooks\": \"x\"}", SettingsError::NoObject(vec!["hooks".into()]), "hooks is no object")]
#[case("{\"hooks\": null}", SettingsError::NoObject(vec!["hooks".into()]), "hooks is no object")]
#[case("{\"hooks\": {\"Stop\": {}}}", SettingsError::NoArray(vec!["hooks".into(), "Stop".into()]), "hooks.Stop is no array")]
#[case("{\"hooks\": {}, \"hooks\": {}}", SettingsError::Twice(vec!["hooks".into()]), "hooks stands there twice")]
fn settings_of_another_shape_are_left_alone(
    #[case] text: &str,
    #[case] why: SettingsError,
    #[case] said: &str,
) {
    assert_eq!(why.to_string(), said);
    assert_eq!(put(text, &hooks()), Err(why));
}

#[rstest]
#[case("{")]
#[case("{\"a\":1}}")]
#[case("{\"a\" 1}")]
#[case("{a: 1}")]
#[case("{'a': 1}")]
#[case("{\"a\": 1 \"b\": 2}")]
#[case("{\"a\": 0x1}")]
#[case("hooks = 1")]
fn a_file_that_is_no_json_is_not_changed(#[case] text: &str) {
    assert!(matches!(put(text, &hooks()), Err(SettingsError::Malformed(_))), "{:?}", put(text, &hooks()));
}

#[test]
fn a_plugin_key_with_another_value_is_refused_as_taken() {
    let text = "{\"markets\": {\"refrain\": {\"path\": \"/mine\"}}}";
    assert_eq!(put(text, &switches()), Err(SettingsError::Taken(vec!["markets".into(), "refrain".into()])));
    assert!(!is_empty(text));
    assert!(["", "\n", "{}", " { } "].iter().all(|text| is_empty(text)));
    assert!(!is_empty("{ /* mine */ }"));
}

/// Any JSON of this depth, with random layout.
fn json(depth: u32) -> BoxedStrategy<String> {
    let space = prop::sample::select(vec!["", " ", "\n", "\r\n\t", " /* c */ ", " // c\n", "\n\n  "]);
    let leaf = prop::sample::select(vec!["1", "null", "true", "\"x\"", "-1.5e3", "\"\\\"{\""])
        .prop_map(str::to_owned);
    let key = prop::sample::select(vec!["a", "b", "c", "d"]);
    let end = prop::sample::select(vec!["", ","]);
    leaf.prop_recursive(depth, 24, 4, move |inner| {
        let object = prop::collection::btree_map(key.clone(), (inner.clone(), space.clone()), 0..4);
        let object = (object, space.clone(), end.clone()).prop_map(|(entries, space, end)| {
            let end = if entries.is_empty() { "" } else { end };
            let entries: Vec<_> = entries
                .iter()
                .map(|(key, (value, space))| format!("{space}\"{key}\":{space}{value}{space}"))
                .collect();
            format!("{{{space}{}{end}{space}}}", entries.join(","))
        });
        let array = (prop::collection::vec((inner, space.clone()), 0..4), space.clone(), end.clone());
        let array = array.prop_map(|(elements, space, end)| {
            let end = if elements.is_empty() { "" } else { end };
            let elements: Vec<_> =
                elements.iter().map(|(value, space)| format!("{space}{value}{space}")).collect();
            format!("[{space}{}{end}{space}]", elements.join(","))
        });
        prop_oneof![object, array]
    })
    .boxed()
}

proptest! {
    #[test]
    fn any_text_is_edited_or_left_alone(text in "[\\[\\]{}:,\"a/*\\\\ \n\r\t\u{feff}\u{e9}0-]{0,24}") {
        if let Ok((with, splices)) = put(&text, &hooks()) {
            prop_assert_eq!(undo(&with, &splices), Some(text));
            prop_assert!(hooks().iter().all(|edit| look(&with, edit) == Ok(EntryState::Same)), "{}", with);
        }
    }

    #[test]
    fn any_settings_get_it_and_are_as_they_were(
        hooks_of in prop::option::of(json(2)), stops in prop::option::of(json(2)), on in prop::option::of(json(2)), rest in json(3),
    ) {
        let array = |text: String| if text.starts_with('[') { text } else { format!("[{text}\n]") };
        let object = |text: String| if text.starts_with('{') { text } else { format!("{{\"x\": {text}\n}}") };
        let mut keys = vec![format!("\"rest\": {rest}")];
        keys.extend(stops.map(|stops| format!("\"hooks\": {{\"Stop\": {}\n}}", array(stops))).or(hooks_of.map(|hooks| format!("\"hooks\":{}", object(hooks)))));
        keys.extend(on.map(|on| format!("\n  \"on\": {}", object(on))));
        let text = format!("{{{}\n}}", keys.join(", "));
        there_and_back(&text, &[hooks(), switches()].concat());
    }
}
