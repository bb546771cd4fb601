//! Tests of the help: each visible verb says in one short line what it does, and ends with examples that can be typed.

use clap::Command;

/// The longest first line of a verb's help, in characters.
const LONGEST: usize = 70;

/// Each visible verb with the words that lead to it, and whether other verbs are below it.
fn verbs() -> Vec<(String, Command)> {
    fn below(path: &str, command: &Command, found: &mut Vec<(String, Command)>) {
        for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help")
        {
            let path = format!("{path} {}", verb.get_name());
            // The verbs below `loop` are those of the top level.
            if path != "refrain loop" {
                found.push((path.clone(), verb.clone()));
                below(&path, verb, found);
            }
        }
    }
    let mut definition = crate::cli::definition();
    definition.build();
    let mut found = Vec::new();
    below("refrain", &definition, &mut found);
    found
}

/// The command lines below `Examples:`, with those that go over several lines joined.
fn examples(verb: &Command) -> Vec<String> {
    let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
    let examples = help.rsplit_once("Examples:\n").map(|(_, examples)| examples).unwrap_or_default();
    examples.replace("\\\n", " ").lines().map(|line| line.trim().to_owned()).collect()
}

#[test]
fn the_first_line_of_each_verb_is_short() {
    for (path, verb) in verbs() {
        let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
        let length = about.chars().count();
        assert!((1..=LONGEST).contains(&length), "{path}: {length} characters: {about}");
        assert!(!about.ends_with('.') && about.starts_with(char::is_uppercase), "{path}: {about}");
    }
}

#[test]
fn each_verb_ends_with_two_examples_that_parse() {
    let all = verbs();
    assert!(all.len() > 40, "{}", all.len());
    for (path, verb) in all {
        let examples = examples(&verb);
        assert!(examples.len() >= 2, "{path} has {examples:?}");
        for example in examples.iter().filter(|example| example.starts_with("refrain ")) {
            let words =
                example.split(" < ").next().and_then(|line| line.split(" > ").next()).unwrap_or_default();
            let words = shlex::split(words).unwrap_or_else(|| panic!("{example}"));
            let parsed = crate::cli::definition().try_get_matches_from(words);
            assert!(parsed.is_ok(), "{path}: {example}: {}", parsed.unwrap_err());
            let shown =
                path.split(' ').nth(1).is_some_and(|verb| example.split(' ').any(|word| word == verb));
            assert!(shown, "{path}: {example} is an example of another verb");
        }
    }
}
