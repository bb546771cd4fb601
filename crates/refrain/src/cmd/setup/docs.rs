use std::process::ExitCode;

use refrain_app::{Code, Context, RequestError, book};

use crate::render::markdown;
use crate::{out, pager};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain docs
  refrain docs configuration")]
pub(crate) struct Args {
    /// The page to read [default: a list of all pages]
    topic: Option<String>,
}

/// The widest line of a page on a terminal, in columns.
const WIDEST: usize = 100;

/// Prints a page, or the list of all: on a terminal in styles and through the pager, elsewhere the Markdown text.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let text = match args.topic.as_deref() {
        None | Some("index") => list(),
        Some(topic) => match book::find(topic) {
            Ok(page) => without_comments(page.text),
            Err(nearest) => return Err(unknown(topic, &nearest)),
        },
    };
    match out::terminal_width() {
        Some(width) => pager::page(context, &markdown::render(&text, width.min(WIDEST)))?,
        None => out::print_whole(&text)?,
    }
    Ok(Code::Done.into())
}

fn unknown(topic: &str, nearest: &[&str]) -> RequestError {
    let topics: Vec<_> = book::PAGES.iter().map(|page| page.topic).collect();
    let refusal = RequestError::usage(format!("unknown topic '{topic}'"));
    match topic {
        "cli" => refusal.hint("refrain --help lists all verbs, refrain VERB --help explains one"),
        "architecture" => refusal.hint("it is in the source code, for developers: docs/architecture.md"),
        "contributing" => refusal.hint("it is in the source code, for developers: CONTRIBUTING.md"),
        verb if crate::cli::definition().find_subcommand(verb).is_some() => {
            return refusal
                .hint(format!("refrain {verb} --help explains the verb, refrain docs lists all topics"));
        }
        _ if nearest.is_empty() => refusal.hint(format!("accepted: index, {}", topics.join(", "))),
        _ => refusal.hint(format!("did you mean refrain docs {}?", nearest.join(" or "))),
    }
    .hint("refrain docs lists all topics, refrain VERB --help explains a verb")
}

/// The text without the comments of its authors, which say which examples a test runs.
fn without_comments(text: &str) -> String {
    let is_comment = |line: &&str| line.starts_with("<!--") && line.ends_with("-->");
    text.lines().filter(|line| !is_comment(line)).map(|line| format!("{line}\n")).collect()
}

/// All topics with their titles, part after part.
fn list() -> String {
    let mut text = "# The documentation of Refrain\n\nRead a page with `refrain docs TOPIC`.\n".to_owned();
    for (k, page) in book::PAGES.iter().enumerate() {
        if k == 0 || book::PAGES[k - 1].part != page.part {
            text.push_str(&format!("\n## {}\n\n| topic | |\n|---|---|\n", page.part));
        }
        text.push_str(&format!("| `{}` | {} |\n", page.topic, page.title()));
    }
    text
}
