//! What a person types after a session's command: options, the prompt, options. An unknown option is an error and never
//! prompt text; quotation marks, and `--` before the prompt, make text of it.

use refrain_app::RequestError;
use refrain_core::text::nearest;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct TypedLine {
    /// The options with their values, as a shell would split them.
    pub(super) options: Vec<String>,
    /// The prompt, verbatim; without the quotation marks of one that is a single quotation.
    pub(super) prompt: String,
}

pub(super) struct KnownOption {
    /// As it is typed: `--name`, `-n`.
    pub(super) name: String,
    pub(super) takes_value: bool,
}

/// The options that only a start outside of sessions takes are refused as such.
pub(super) fn read(
    text: &str,
    known: &[KnownOption],
    outside: &[KnownOption],
) -> Result<TypedLine, RequestError> {
    let mut line = TypedLine { options: Vec::new(), prompt: String::new() };
    // Where the prompt lies, and the first option after it.
    let (mut prompt, mut behind) = (None::<(usize, usize)>, None::<String>);
    let mut at = 0;
    loop {
        at += blank(&text[at..]);
        let rest = &text[at..];
        let word = rest.split_whitespace().next().unwrap_or_default();
        if word.is_empty() {
            break;
        }
        // Within a prompt it is a dash.
        if word == "--" && prompt.is_none() {
            line.prompt = rest[2..].trim().to_owned();
            return Ok(line);
        }
        if !is_option(word) {
            if let Some(option) = behind {
                let error = format!(
                    "{option}: it stands inside the prompt; accepted: options before the prompt or after it"
                );
                return Err(RequestError::usage(error).hint(AS_TEXT));
            }
            let end = at + quotation(rest).unwrap_or(word.len());
            prompt = Some((prompt.map_or(at, |(from, _)| from), end));
            at = end;
            continue;
        }
        let name = word.split('=').next().unwrap_or_default();
        let option = known.iter().find(|known| known.name == name);
        let option = option.ok_or_else(|| unknown(name, known, outside))?;
        if prompt.is_some() {
            behind.get_or_insert_with(|| name.to_owned());
        }
        at += take(rest, &mut line.options)?;
        if option.takes_value && !word.contains('=') {
            at += blank(&text[at..]);
            at += take(&text[at..], &mut line.options)?;
        }
    }
    if let Some((from, to)) = prompt {
        let text = &text[from..to];
        line.prompt = unquoted(text).unwrap_or(text).to_owned();
    }
    Ok(line)
}

const AS_TEXT: &str =
    "to make it part of the prompt, put it in quotation marks, or type -- before the prompt";

fn unknown(name: &str, known: &[KnownOption], outside: &[KnownOption]) -> RequestError {
    if outside.iter().any(|option| option.name == name) {
        let error = format!("{name}: not in a session; refrain start takes it");
        return RequestError::usage(error).hint(AS_TEXT);
    }
    let meant = nearest(name, known.iter().map(|known| known.name.as_str()));
    let error = RequestError::usage(format!("{name}: unknown option"));
    let error = match meant {
        Some(meant) => error.hint(format!("did you mean {meant}?")),
        None => error.hint("refrain tick begin --help lists the options"),
    };
    error.hint(AS_TEXT)
}

/// Whether a word is an option: `--name`, `--name=value`, `-n`. A list mark, a rule and a number are text.
fn is_option(word: &str) -> bool {
    let begins = |text: &str| text.starts_with(|c: char| c.is_ascii_alphabetic());
    match (word.strip_prefix("--"), word.strip_prefix('-')) {
        (Some(name), _) => begins(name),
        (None, Some(name)) => begins(name) && (name.len() == 1 || name[1..].starts_with('=')),
        (None, None) => false,
    }
}

/// How long the white space is that a text begins with, lines joined by `\` included.
fn blank(text: &str) -> usize {
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let white = rest.len() - rest.trim_start().len();
        let joint = ["\\\n", "\\\r\n"].into_iter().find(|joint| rest[white..].starts_with(joint));
        // One at the very end joins nothing.
        let is_last = &rest[white..] == "\\";
        at += white + joint.map_or(0, str::len) + usize::from(is_last);
        if joint.is_none() {
            return at;
        }
    }
}

/// Takes the first word, as a shell would; its length in the text.
fn take(text: &str, words: &mut Vec<String>) -> Result<usize, RequestError> {
    let (mut quote, mut end, mut escaped) = (None, text.len(), false);
    for (place, c) in text.char_indices() {
        match (c, quote) {
            _ if escaped => escaped = false,
            ('\\', None | Some('"')) => escaped = true,
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            (c, None) if c.is_whitespace() => {
                end = place;
                break;
            }
            _ => {}
        }
    }
    let word = &text[..end];
    let split = shlex::split(word).ok_or_else(|| {
        RequestError::usage(format!("{word}: a quotation has no end; accepted: options, then the prompt"))
    })?;
    words.extend(split);
    Ok(end)
}

/// How long the quotation is that a text begins with: `"…"`, `'…'`, or between backticks; none where it has no end.
fn quotation(text: &str) -> Option<usize> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'))?;
    let open = if quote == '`' { text.len() - text.trim_start_matches('`').len() } else { 1 };
    let mark = &text[..open];
    let end = open + text[open..].find(mark)? + open;
    // What follows belongs to the same word: `"it"s`.
    Some(end + text[end..].find(char::is_whitespace).unwrap_or(text.len() - end))
}

/// A text that is one quotation, without its marks.
fn unquoted(text: &str) -> Option<&str> {
    let inside = |mark| text.strip_prefix(mark)?.strip_suffix(mark).filter(|inside| !inside.contains(mark));
    inside('"').or_else(|| inside('\''))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn known() -> Vec<KnownOption> {
        let known = |(name, takes_value): (&str, bool)| KnownOption { name: name.to_owned(), takes_value };
        [("--loop", false), ("--name", true), ("--gate", true), ("--max", true), ("-n", true)]
            .map(known)
            .into()
    }

    #[rstest]
    #[case::nothing("", &[], "")]
    #[case::a_prompt("Mend it.", &[], "Mend it.")]
    #[case::options_before("--loop --name a Mend it.", &["--loop", "--name", "a"], "Mend it.")]
    #[case::options_behind("Mend it. --name a -n 5", &["--name", "a", "-n", "5"], "Mend it.")]
    #[case::on_both_sides("--loop Mend it. --name=a", &["--loop", "--name=a"], "Mend it.")]
    #[case::lines_joined("--loop \\\n  --name \"a b\" \\\n  --max 3 \\\n", &["--loop", "--name", "a b", "--max", "3"], "")]
    #[case::a_prompt_in_joined_lines("Mend it. \\\n  --max 3", &["--max", "3"], "Mend it.")]
    #[case::windows_lines("--loop \\\r\n--max 3", &["--loop", "--max", "3"], "")]
    #[case::a_quoted_value("--gate 'cargo test --name x' Mend it.", &["--gate", "cargo test --name x"], "Mend it.")]
    #[case::a_value_that_is_an_option("--gate=\"a --b\" p", &["--gate=a --b"], "p")]
    #[case::quotations("Explain \"--name and --nope\" and '--loop'. --max 3", &["--max", "3"], "Explain \"--name and --nope\" and '--loop'.")]
    #[case::one_quotation("\"Explain --nope.\" --max 3", &["--max", "3"], "Explain --nope.")]
    #[case::code("Run `make --nope`, then\n```sh\nls --all\n```\n--max 3", &["--max", "3"], "Run `make --nope`, then\n```sh\nls --all\n```")]
    #[case::two_dashes("--max 3 -- Explain --nope and --loop", &["--max", "3"], "Explain --nope and --loop")]
    #[case::a_dash_in_a_prompt("a - b -- c --max 3", &["--max", "3"], "a - b -- c")]
    #[case::lists_and_rules("- one\n- two\n---\n-5", &[], "- one\n- two\n---\n-5")]
    #[case::an_open_quotation("It's \"odd --max 3", &["--max", "3"], "It's \"odd")]
    #[case::lines_are_kept("one\n\n  two \\\n three", &[], "one\n\n  two \\\n three")]
    fn options_are_distinguished_from_the_prompt(
        #[case] text: &str,
        #[case] options: &[&str],
        #[case] prompt: &str,
    ) {
        let line = read(text, &known(), &[]).unwrap();
        assert_eq!(
            (line.options.iter().map(String::as_str).collect::<Vec<_>>().as_slice(), line.prompt.as_str()),
            (options, prompt)
        );
    }

    #[rstest]
    #[case("Mend it. --max-cost 5", "--max-cost: unknown option")]
    #[case("Mend it. --nmae x", "did you mean --name?")]
    #[case("--nope p", "--nope: unknown option")]
    #[case("Mend it. -x 5", "-x: unknown option")]
    #[case("Explain -- --nope", "--nope: unknown option")]
    #[case("Explain --name to me.", "--name: it stands inside the prompt")]
    #[case("p --name 'a", "a quotation has no end")]
    #[case("Mend it. --detach", "--detach: not in a session; refrain start takes it")]
    fn an_unknown_option_is_never_taken_as_text(#[case] text: &str, #[case] says: &str) {
        let outside = [KnownOption { name: "--detach".to_owned(), takes_value: false }];
        let error = read(text, &known(), &outside).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}
