use std::process::ExitCode;

use refrain_app::{Code, Context, RequestError};
use refrain_core::memory::{Kind, STANDING};

use crate::out;

/// Add a memory to this project
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A fact with an importance of 0.85 or more goes into the prompt of every loop of the project; \
other memories only into those that they fit.\n\nExamples:\n  refrain memory add \"The database needs the port 5433.\"\n  \
    refrain memory add --importance 0.9 \"Never edit generated files.\""
)]
pub(super) struct Args {
    /// What is to be remembered: a sentence or two
    #[arg(required = true, value_name = "TEXT")]
    words: Vec<String>,
    /// What it is: fact, episode or procedure
    #[arg(long, value_name = "KIND", default_value_t = Kind::Fact)]
    kind: Kind,
    /// How much it matters, from 0 to 1
    #[arg(long, value_name = "N", default_value_t = 0.7, allow_negative_numbers = true, value_parser = importance)]
    importance: f64,
}

fn importance(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| "accepted: a number from 0 to 1, like 0.7".to_owned())
}

pub(super) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    let words = args.words.join(" ");
    let longest = args.kind.longest();
    if words.len() > longest {
        let error =
            format!("TEXT has {} bytes; accepted: at most {longest} for a {}", words.len(), args.kind);
        return Err(
            RequestError::usage(error).hint("several short memories are found better than a long one")
        );
    }
    let kept = service.remember(args.kind, &words, args.importance)?;
    out::print(&format!("{}\n", kept.id));
    if kept.is_standing() && args.importance < STANDING {
        out::tell_line("", "note: it was said before, and every loop of the project gets it from now on");
    }
    Ok(Code::Done.into())
}
