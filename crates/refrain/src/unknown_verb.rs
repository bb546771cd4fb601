//! What a command line with an unknown verb most likely means.

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use refrain_app::RequestError;
use refrain_core::text::{nearest, printable};

/// The words that other programs use, and the verbs that do the same here.
const SYNONYMS: &[(&[&str], &[&str])] = &[
    (&["stop", "halt"], &["pause", "cancel"]),
    (&["kill", "abort", "end", "terminate", "cancel-loop", "cancel-ralph"], &["cancel"]),
    (&["continue", "retry", "restart", "unpause", "go"], &["resume"]),
    (&["attach", "follow", "monitor"], &["watch"]),
    (&["tail", "log", "output"], &["logs"]),
    (&["stats", "cost", "costs", "spend"], &["usage"]),
    (&["ls", "ps", "jobs", "loops", "list-loops"], &["list"]),
    (&["rm", "remove", "delete"], &["archive"]),
    (&["prune", "clean", "cleanup"], &["gc"]),
    (&["web", "ui", "gui", "dashboard", "server"], &["serve", "top"]),
    (&["inspect", "info", "describe"], &["status", "show"]),
    (&["history", "journal", "events"], &["show"]),
    (&["new", "create", "begin", "launch", "ralph-loop", "phantom_loop"], &["start"]),
    (&["team-review", "team-implement", "review-code"], &["start"]),
    (&["randroid-loop", "randroid"], &["research", "implement"]),
    (&["tell", "say", "send", "message"], &["steer"]),
    (&["undo", "withdraw", "unsteer"], &["take-back"]),
    (&["validate", "prove"], &["verify"]),
    (&["agents", "health", "login"], &["doctor"]),
    (&["land", "integrate"], &["merge"]),
    (&["revert", "rollback"], &["discard"]),
    (&["unarchive", "restore"], &["list"]),
    (&["settings"], &["config"]),
    (&["setup", "setup-loop"], &["init"]),
    (&["tasks", "tune", "scud", "next-priority"], &["plan"]),
];

/// How many letters begin a verb, for it to be meant.
const LEAST: usize = 3;

/// The refusal of an unknown verb, with the visible verbs that it may mean; none for any other error.
pub(crate) fn refusal(error: &clap::Error, mut definition: Command) -> Option<RequestError> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    // The verbs below a verb are there once it is built.
    definition.build();
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    let (parent, path) = parent(&definition, &usage);
    let refusal = RequestError::usage(format!("unknown verb '{word}'"));
    // `plan watch` is `watch`, which takes the name of a plan too.
    let above = definition.find_subcommand(word).filter(|verb| !verb.is_hide_set());
    let meant: Vec<_> = match above {
        Some(verb) => vec![format!("{} {}", definition.get_name(), verb.get_name())],
        None if word.contains(char::is_whitespace) => vec![task(&definition, word)],
        None => meant(parent, word).iter().map(|verb| format!("{path} {verb}")).collect(),
    };
    let refusal = if meant.is_empty() {
        refusal
    } else {
        refusal.hint(format!("did you mean {}?", meant.join(" or ")))
    };
    Some(refusal.hint(format!("accepted: what {path} --help lists")))
}

/// The command line that starts a loop with a task that was given instead of a verb.
fn task(definition: &Command, word: &str) -> String {
    let quoted =
        shlex::try_quote(word).map_or_else(|_| "TASK".into(), |quoted| printable(&quoted).into_owned());
    format!("{} start {quoted}", definition.get_name())
}

/// The command whose verb is unknown, and the words that lead to it.
fn parent<'a>(definition: &'a Command, usage: &str) -> (&'a Command, String) {
    let words = usage.split_whitespace().skip_while(|word| *word != definition.get_name()).skip(1);
    let mut found = (definition, definition.get_name().to_owned());
    for word in words {
        let Some(below) = found.0.find_subcommand(word) else { break };
        found = (below, format!("{} {word}", found.1));
    }
    found
}

/// The verbs of a command that a word may mean, best first. Hidden ones are never among them.
fn meant<'a>(parent: &'a Command, word: &str) -> Vec<&'a str> {
    let word = word.to_lowercase();
    let verbs = || parent.get_subcommands().filter(|verb| !verb.is_hide_set()).map(Command::get_name);
    let same = SYNONYMS.iter().find(|(words, _)| words.contains(&word.as_str()));
    let same = same.into_iter().flat_map(|(_, same)| *same);
    let known: Vec<_> = same.filter_map(|same| verbs().find(|verb| verb == same)).collect();
    let begun: Vec<_> = verbs().filter(|verb| word.len() >= LEAST && verb.starts_with(&word)).collect();
    match (known.is_empty(), begun.len()) {
        (false, _) => known,
        (true, 1 | 2) => begun,
        (true, _) => nearest(&word, verbs()).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn definition() -> Command {
        let mut definition = crate::cli::definition();
        definition.build();
        definition
    }

    #[test]
    fn a_synonym_is_no_verb_and_means_one() {
        let definition = definition();
        for (words, verbs) in SYNONYMS {
            for word in *words {
                assert!(definition.find_subcommand(word).is_none(), "{word} is a verb");
            }
            for verb in *verbs {
                assert!(definition.find_subcommand(verb).is_some(), "{verb} is no verb");
            }
        }
    }

    #[rstest]
    #[case("stop", &["pause", "cancel"])]
    #[case("STOP", &["pause", "cancel"])]
    #[case("strat", &["start"])]
    #[case("statsu", &["status"])]
    // It begins one verb, and is nearer to another, which costs money.
    #[case("stat", &["status"])]
    #[case("sta", &["start", "status"])]
    // The nearest name is that of a hidden verb.
    #[case("driv", &[])]
    #[case("generat", &[])]
    #[case("xylophone", &[])]
    fn the_verb_that_is_meant_is_a_visible_one(#[case] word: &str, #[case] verbs: &[&str]) {
        assert_eq!(meant(&definition(), word), verbs);
    }
}
