//! Tests of the table of effects: it matches the definition, and each kind of row works.

use std::collections::{BTreeMap, BTreeSet};

use clap::{Command, CommandFactory};
use rstest::rstest;

use refrain_app::effects::{Condition, Level, TABLE, TypedOptions};

/// The long name of each option of each verb, hidden ones too.
fn options() -> BTreeMap<String, BTreeSet<String>> {
    fn take(command: &Command, verb: &str, found: &mut BTreeMap<String, BTreeSet<String>>) {
        let options = command.get_arguments().filter(|arg| !arg.is_global_set());
        let names =
            options.filter_map(|arg| arg.get_long()).filter(|name| !["help", "version"].contains(name));
        found.entry(verb.to_owned()).or_default().extend(names.map(str::to_owned));
        for below in command.get_subcommands() {
            // The loop verbs, spelled out, are the same.
            if !(verb.is_empty() && below.get_name() == "loop") {
                take(below, format!("{verb} {}", below.get_name()).trim(), found);
            }
        }
    }
    let mut found = BTreeMap::new();
    let mut definition = crate::cli::definition();
    definition.build();
    take(&definition, "", &mut found);
    found
}

#[test]
fn every_option_of_every_verb_has_a_row() {
    let of = |verb: &str| -> BTreeSet<&str> {
        let groups = TABLE.iter().filter(|(verbs, _)| verbs.contains(&verb));
        groups.flat_map(|(_, rows)| *rows).flat_map(|row| row.options.split_whitespace()).collect()
    };
    let mut missing = Vec::new();
    for (verb, options) in options() {
        let rows = of(&verb);
        let without = options.iter().filter(|option| !rows.contains(option.as_str()));
        missing.extend(without.map(|option| format!("{verb} --{option}")));
    }
    assert!(missing.is_empty(), "say in effects/table.rs when these have an effect: {missing:#?}");
}

#[test]
fn no_row_is_about_an_option_that_is_not_there() {
    let options = options();
    // A word that is no option.
    let words = ["words"];
    let mut stale = Vec::new();
    for (verbs, rows) in TABLE {
        for verb in *verbs {
            let Some(there) = options.get(*verb) else {
                stale.push((*verb).to_owned());
                continue;
            };
            let mut names: Vec<&str> = Vec::new();
            for row in *rows {
                names.extend(row.options.split_whitespace());
                if let Condition::With(others) | Condition::Without(others) = row.when {
                    names.extend(others.split_whitespace());
                }
            }
            let gone = names.into_iter().filter(|name| !there.contains(*name) && !words.contains(name));
            stale.extend(gone.map(|name| format!("{verb} --{name}")));
        }
    }
    assert!(stale.is_empty(), "{stale:#?}");
}

#[test]
fn every_refusing_row_states_the_reason_and_the_remedy() {
    for row in TABLE.iter().flat_map(|(_, rows)| *rows) {
        let says_both = row.text.starts_with("not with a plan") || row.text.contains(';');
        assert!(matches!(row.when, Condition::Always) || says_both, "{:?}: {}", row.options, row.text);
    }
}

/// A line of this verb in which only these are typed, with no values.
fn typed(verb: &str, names: &[&str]) -> TypedOptions {
    let typed = names.iter().map(|name| ((*name).to_owned(), Vec::new())).collect();
    TypedOptions { levels: vec![Level { verb: verb.to_owned(), typed, ..Level::default() }] }
}

/// The options without which this option has no effect.
fn needed(verb: &str, option: &str) -> Option<&'static str> {
    let groups = TABLE.iter().filter(|(verbs, _)| verbs.contains(&verb));
    let rows = groups.flat_map(|(_, rows)| *rows);
    let mut rows = rows.filter(|row| row.options.split_whitespace().any(|it| it == option));
    rows.find_map(|row| match row.when {
        Condition::With(others) => others.split_whitespace().next(),
        Condition::Always
        | Condition::Without(_)
        | Condition::Typed(_)
        | Condition::Loop(_)
        | Condition::Never => None,
    })
}

#[test]
fn every_option_of_a_refusing_row_is_refused() {
    for (verbs, rows) in TABLE {
        for (verb, row) in verbs.iter().flat_map(|verb| rows.iter().map(move |row| (verb, row))) {
            let others: Vec<Option<&str>> = match row.when {
                Condition::With(_) | Condition::Never => vec![None],
                Condition::Without(others) => others.split_whitespace().map(Some).collect(),
                Condition::Always | Condition::Typed(_) | Condition::Loop(_) => continue,
            };
            for (option, other) in
                row.options.split_whitespace().flat_map(|it| others.iter().map(move |other| (it, other)))
            {
                let mut names: Vec<&str> = std::iter::once(option).chain(*other).collect();
                names.extend(other.and_then(|other| needed(verb, other)));
                let refused = typed(verb, &names).check().expect_err(option).line();
                assert!(refused.starts_with(&format!("--{option}: ")), "{verb} {names:?}: {refused}");
            }
        }
    }
}

#[derive(clap::Parser)]
struct Line {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    Usage(crate::cmd::inspect::usage::Args),
    Trust(crate::cmd::setup::trust::Args),
    Resume(Box<crate::cmd::launch::resume::Args>),
    Serve(crate::cmd::connect::serve::Args),
}

#[rstest]
#[case(&["usage", "--by", "model", "--format", "prometheus"], Some("--by: it has no effect with --format prometheus"))]
#[case(&["usage", "--by", "model", "--format", "prometheus", "--svg", "f"], None)]
#[case(&["usage", "--by", "model"], None)]
#[case(&["trust", "--json", "--revoke"], Some("--json: it has no effect without --list"))]
#[case(&["trust", "--json", "--list"], None)]
#[case(&["resume", "x", "--after-reboot"], Some("--after-reboot: it has no effect without --all"))]
#[case(&["resume", "x", "--command", "c"], Some("--command: it has no effect without --from FILE"))]
#[case(&["resume", "--from", "f", "--command", "c"], None)]
#[case(&["resume", "--all", "--events"], Some("--events: it has no effect with --all"))]
#[case(&["resume", "x", "-m", "4", "--quiet"], None)]
#[case(&["serve", "token", "--revoke"], None)]
#[case(&["serve", "--behind-proxy", "o", "--tls-key", "k"], Some("--tls-key: it has no effect without --tls-cert"))]
fn an_option_without_effect_is_refused(#[case] words: &[&str], #[case] refused: Option<&str>) {
    let mut command = Line::command();
    let matches = command
        .try_get_matches_from_mut([&["refrain"], words].concat())
        .unwrap_or_else(|error| panic!("{error}"));
    let said = TypedOptions::of(&command, &matches).check().err().map(|error| error.line());
    match refused {
        Some(part) => assert!(said.as_deref().unwrap_or_default().starts_with(part), "{said:?}"),
        None => assert_eq!(said, None),
    }
}
