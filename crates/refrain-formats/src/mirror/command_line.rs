//! What a person typed after a session's command, without the parts that only concern the loop.

/// Options of a loop, and whether a value follows each.
const OPTIONS: [(&str, bool); 12] = [
    ("--loop", false),
    ("--loop-isolated", false),
    ("--loop-shared", false),
    ("--resume-last", false),
    ("--completion-promise", true),
    ("--max-iterations", true),
    ("--max", true),
    ("--name", true),
    ("--prompt", true),
    ("--prompt-file", true),
    ("--resume", true),
    ("--isolation", true),
];

pub(super) struct Line {
    pub(super) prompt: String,
    pub(super) file: Option<String>,
}

/// Reads it. The generic command's prompt is the rest of the line; any other command is run again, with the rest of the
/// line.
pub(super) fn line(command: &str, args: &str) -> Line {
    let (mut rest, mut left, mut prompt, mut file) = (args, String::new(), None, None);
    while let Some(c) = rest.chars().next() {
        let begins = left.is_empty() || left.ends_with(char::is_whitespace);
        let Some((option, takes)) = option(rest).filter(|_| begins) else {
            left.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        };
        rest = &rest[option.len()..];
        rest = rest.strip_prefix('=').unwrap_or(rest);
        if takes {
            let (said, behind) = value(rest.trim_start());
            match option {
                "--prompt" => prompt = Some(said),
                "--prompt-file" => file = Some(said),
                _ => {}
            }
            rest = behind;
        }
        rest = rest.trim_start();
    }
    let left = left.trim();
    let slug = command.rsplit([':', '/']).next().unwrap_or_default();
    let prompt = match prompt {
        Some(prompt) => prompt,
        None if slug == "loop" => left.to_owned(),
        None => format!("{command} {left}").trim().to_owned(),
    };
    Line { prompt, file }
}

/// The option that a text begins with, and whether a value follows it.
fn option(text: &str) -> Option<(&'static str, bool)> {
    OPTIONS.into_iter().find(|(option, takes)| {
        let behind = text.strip_prefix(option).map(|behind| behind.chars().next());
        behind.is_some_and(|next| next.is_none_or(|c| c.is_whitespace() || *takes && c == '='))
    })
}

/// The first word, as a shell reads it, and the text after it. An unclosed quotation takes all the rest.
fn value(text: &str) -> (String, &str) {
    let (mut said, mut quote, mut chars) = (String::new(), None, text.char_indices());
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (None, c) if c.is_whitespace() => return (said, &text[at..]),
            (None, '\'' | '"') => quote = Some(c),
            (Some(end), c) if c == end => quote = None,
            (None | Some('"'), '\\') => said.extend(chars.next().map(|(_, c)| c)),
            (_, c) => said.push(c),
        }
    }
    (said, "")
}
