//! `refrain config`.

use std::process::ExitCode;

use camino::Utf8PathBuf;
use owo_colors::OwoColorize;
use refrain_app::{Code, Context, RequestError};
use refrain_core::text::printable;
use refrain_engine::config::{Chosen, Entry, Origin, ProjectFile, Settings};
use schemars::JsonSchema;
use serde::Serialize;

use crate::out;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "Examples:
  refrain config show
  refrain config show --origin";

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Print every key with the value that a loop started here would use
    #[command(after_help = EXAMPLES)]
    Show {
        /// Say where each value comes from
        #[arg(long)]
        origin: bool,
        /// Print an object
        #[arg(long)]
        json: bool,
    },
}

/// What `config show --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Shown {
    /// Where the user's file lies, or would.
    #[schemars(with = "String")]
    user_file: Utf8PathBuf,
    /// The project's file; `null` where there is none.
    project_file: Option<Shared>,
    /// Every key, sorted.
    values: Vec<Entry>,
}

/// The project's file.
#[derive(Debug, Serialize, JsonSchema)]
struct Shared {
    /// Where it lies.
    #[schemars(with = "String")]
    path: Utf8PathBuf,
    /// Whether it counts.
    trusted: bool,
}

/// Prints the configuration.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let Verb::Show { origin, json } = args.verb;
    let settings = context.service()?.settings(Chosen::default(), context.has_variables())?;
    match json {
        true => out::print_json(&shown(settings))?,
        false => out::print(&text(&shown(settings), origin)),
    }
    Ok(Code::Done.into())
}

fn shown(settings: Settings) -> Shown {
    let values = settings.entries();
    let project_file = match settings.project_file {
        ProjectFile::Absent => None,
        ProjectFile::Trusted(path) => Some(Shared { path, trusted: true }),
        ProjectFile::Untrusted(path) => Some(Shared { path, trusted: false }),
    };
    Shown { user_file: settings.user_file, project_file, values }
}

/// As a configuration file: keys without a value are comments.
fn text(shown: &Shown, with_origin: bool) -> String {
    let flat = |text: &str| printable(text).replace('\n', " ");
    let mut text = String::new();
    if let Some(Shared { path, trusted: false }) = &shown.project_file {
        for note in [
            format!("# {} is not trusted and counts as not there;", flat(path.as_str())),
            "# refrain trust shows what it would allow".to_owned(),
        ] {
            text.push_str(&format!("{}\n", note.yellow()));
        }
    }
    for Entry { key, value, origin } in &shown.values {
        let key = flat(key);
        let line = match value {
            Some(value) => format!("{key} = {}", flat(&value.to_string())),
            None => format!("# {key} is not set"),
        };
        let is_built_in = *origin == Origin::Default;
        let line = if is_built_in { line.dimmed().to_string() } else { line };
        let origin = flat(&origin.to_string());
        match with_origin {
            true => text.push_str(&format!("{line}  {}\n", format!("# {origin}").dimmed())),
            false => text.push_str(&format!("{line}\n")),
        }
    }
    text
}
