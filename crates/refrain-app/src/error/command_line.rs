//! Converts an error of clap to one line that names the value and what is accepted.

use clap::error::ErrorKind;

use super::RequestError;

impl From<clap::Error> for RequestError {
    fn from(error: clap::Error) -> Self {
        if matches!(
            error.kind(),
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand
        ) {
            let verb = usage_of(&error.to_string()).unwrap_or_else(|| "refrain".to_owned());
            let error = Self::usage(format!("a verb is missing; accepted: what {verb} --help lists"));
            return if verb == "refrain" { error.hint("refrain demo shows one at work") } else { error };
        }
        let text = error.to_string();
        // What is quoted first: what was typed, or the suggestion in a tip.
        let quoted =
            |text: &str| text.split('\'').nth(1).unwrap_or_default().trim_start_matches('-').to_owned();
        let typed = quoted(&text);
        let is_alike =
            |suggested: &str| suggested.contains(&typed) || suggested.chars().next() == typed.chars().next();
        let is_meant = |line: &&str| match line.trim_start() {
            // After `--` it would be no value of the option either.
            tip if tip.starts_with("tip: to pass '") => false,
            // `zsh` for `tcsh` and `--version` for `--iteration` are guesses.
            tip if tip.starts_with("tip: a similar ") => is_alike(&quoted(tip)),
            _ => true,
        };
        let text = text.lines().filter(is_meant).collect::<Vec<_>>().join("\n");
        let text = text.replace("\n\n  tip:", "; tip:");
        let text = text.trim_start_matches("error: ");
        let end = ["\n\nUsage:", "\n\nFor more information"].iter().filter_map(|mark| text.find(mark)).min();
        let message = text[..end.unwrap_or(text.len())].split_whitespace().collect::<Vec<_>>().join(" ");
        let told = Self::usage(without_brackets(message));
        match accepted(&error, text) {
            Some(accepted) => told.hint(format!("accepted: {accepted}")),
            None => told,
        }
    }
}

/// What is accepted, where clap does not say it.
fn accepted(error: &clap::Error, text: &str) -> Option<String> {
    match error.kind() {
        ErrorKind::MissingRequiredArgument | ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand => {
            usage_of(text).map(|verb| format!("what {verb} --help lists"))
        }
        ErrorKind::ArgumentConflict if text.contains("cannot be used multiple times") => {
            Some("once".to_owned())
        }
        ErrorKind::ArgumentConflict => Some("one of them".to_owned()),
        ErrorKind::TooManyValues => Some("the option alone".to_owned()),
        ErrorKind::InvalidUtf8 => Some("UTF-8 text".to_owned()),
        // A parser of a value, or the list of values, says it.
        ErrorKind::InvalidValue if !text.contains("[possible values: ") => {
            Some("a value that is not empty".to_owned())
        }
        _ => None,
    }
}

/// The list of possible values in the words of all other refusals.
fn without_brackets(message: String) -> String {
    let Some((before, list)) = message.rsplit_once(" [possible values: ") else { return message };
    match list.split_once(']') {
        Some((values, after)) => format!("{before}; accepted: {values}{after}"),
        None => message,
    }
}

/// The words before the first option or argument of the usage that a text gives: the program and its verb.
fn usage_of(text: &str) -> Option<String> {
    let usage = text.split_once("\n\nUsage: ")?.1;
    let is_word =
        |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-');
    Some(usage.split_whitespace().take_while(is_word).collect::<Vec<_>>().join(" "))
}
