use std::process::ExitCode;

use camino::{Utf8Path, Utf8PathBuf};
use owo_colors::OwoColorize;
use refrain_app::verbs::set_config::{config_key, set_config, unset_config};
use refrain_app::{Action, Code, Context, RequestError};
use refrain_core::text::printable;
use refrain_engine::config::{AgentChoice, Entry, Origin, ProjectFile, Settings, edit, user_file};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::{out, values};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain config set start.agent claude
  refrain config get start.max-iterations")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Print every key with the value that a loop started here would use
    #[command(after_help = "Examples:\n  refrain config show\n  refrain config show --origin")]
    Show {
        /// Say where each value comes from
        #[arg(long)]
        origin: bool,
        /// Print an object
        #[arg(long)]
        json: bool,
    },
    /// Print the value of one key that a loop started here would use
    ///
    /// The exit code is 1 if the key has no value.
    #[command(
        after_help = "Examples:\n  refrain config get start.agent\n  refrain config get start.max-iterations --json"
    )]
    Get {
        /// A key, like start.max-iterations
        key: String,
        /// Print an object, with the origin of the value
        #[arg(long)]
        json: bool,
    },
    /// Set one key in your own file; comments and other keys stay as they are
    #[command(
        after_help = "Examples:\n  refrain config set start.agent claude\n  refrain config set start.max-iterations 40"
    )]
    Set {
        /// A key, like start.agent
        key: String,
        /// Its value: a text, a number, true, false, or a TOML list
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Remove one key from your own file; all other lines stay as they are
    ///
    /// The exit code is 1 if the file does not have the key.
    #[command(
        after_help = "Examples:\n  refrain config unset start.agent\n  refrain config unset start.max-iterations"
    )]
    Unset {
        /// A key, like start.agent
        key: String,
    },
    /// Open your own file in an editor, and check it afterwards
    #[command(after_help = "Examples:\n  refrain config edit\n  VISUAL=nano refrain config edit")]
    Edit,
    /// Print the path of your own file
    #[command(after_help = "Examples:\n  refrain config path\n  cat \"$(refrain config path)\"")]
    Path,
}

impl Args {
    /// The verb's action, for [`Action::permission`].
    pub(crate) fn action(&self) -> Action {
        match self.verb {
            Verb::Show { .. } | Verb::Get { .. } | Verb::Path => Action::Look,
            Verb::Set { .. } | Verb::Unset { .. } | Verb::Edit => Action::Configure,
        }
    }
}

/// What `config show --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ConfigListing {
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

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let home = &context.host.config_home;
    match &args.verb {
        Verb::Show { origin, json } => show(context, *origin, *json),
        Verb::Get { key, json } => get(context, key, *json),
        Verb::Set { key, value } => {
            let path = set_config(context, key, value)?;
            out::tell(&format!("{path}: {key} is {}\n", set_to(key, value)));
            if let Some((value, origin)) = applied(context, key, &path) {
                out::tell_note(format!("{origin} overrides it: {key} is {value} here"));
            }
            Ok(Code::Done.into())
        }
        Verb::Unset { key } => {
            let Some(path) = unset_config(context, key)? else {
                let place = edit::user_path(home);
                return Err(RequestError::new(Code::Failed, format!("{key} is not set in {place}")));
            };
            out::tell(&format!("{path}: {key} is removed\n"));
            if let Some((value, origin)) = applied(context, key, &path) {
                out::tell_note(format!("{key} is {value} here ({origin})"));
            }
            Ok(Code::Done.into())
        }
        Verb::Edit => edit(context),
        Verb::Path => {
            out::print(&format!("{}\n", edit::user_path(home)));
            Ok(Code::Done.into())
        }
    }
}

/// The value of the key that a loop started here would use, and its origin; none if it is from the file at `path`.
fn applied(context: &Context, key: &str, path: &Utf8Path) -> Option<(String, Origin)> {
    // Outside a project, or in one whose file cannot be read, nothing else is known to apply.
    let settings = context.service().ok()?.settings(AgentChoice::default(), context.has_variables()).ok()?;
    let Entry { value, origin, .. } = settings.entry(&config_key(key).ok()?)?;
    if matches!(&origin, Origin::File { path: file, .. } if file == path) {
        return None;
    }
    let value = match value? {
        Value::String(text) => printable(&text).into_owned(),
        Value::Null => return None,
        value => printable(&value.to_string()).into_owned(),
    };
    Some((value, origin))
}

/// The keys beside those of `[budget]` for which "none" is no limit; for others it is a text like any other.
const LIMITS: [&str; 7] = [
    "evolution.max-cost",
    "start.idle-timeout",
    "start.max-cost",
    "start.max-duration",
    "start.max-tokens",
    "start.retry-for",
    "start.timeout",
];

/// What the key is now, in words: "none" is a value, which stays in the file.
fn set_to(key: &str, value: &str) -> &'static str {
    match (value, key) {
        ("none", "git.workflow") => "\"none\": loops commit nothing",
        ("none", "start.pause") => "\"none\": no pause between iterations",
        ("none", "notify.wait-longer-than") => "\"none\": waits for a provider are not notified",
        ("none", key) if LIMITS.contains(&key) || key.starts_with("budget.") => "\"none\": no limit applies",
        (_, _) => "set",
    }
}

fn get(context: &Context, key: &str, json: bool) -> Result<ExitCode, RequestError> {
    let path = config_key(key)?;
    let settings = context.service()?.settings(AgentChoice::default(), context.has_variables())?;
    let Some(entry) = settings.entry(&path) else {
        return Err(RequestError::new(Code::Failed, format!("{key} is not set")));
    };
    match (&entry.value, json) {
        (_, true) => out::print_json(&entry)?,
        (Some(Value::String(text)), false) => out::print(&format!("{}\n", printable(text))),
        (Some(value), false) => out::print(&format!("{value}\n")),
        (None, false) => {}
    }
    Ok(Code::Done.into())
}

/// Opens the user's file in the editor, and checks what was written.
fn edit(context: &Context) -> Result<ExitCode, RequestError> {
    let home = &context.host.config_home;
    let Some(words) = values::editor(context)? else {
        let error = "refrain config edit: neither VISUAL nor EDITOR names an editor";
        return Err(RequestError::usage(error).hint("refrain config set KEY VALUE needs none"));
    };
    let path = edit::prepare(home)?;
    let code = values::open(context, &words, Some(path.as_str()), home)?;
    if code != ExitCode::SUCCESS {
        out::tell_note(format!("the editor {} failed", words.join(" ")));
    }
    if let Some(file) = user_file(home)? {
        file.parse()?;
    }
    Ok(code)
}

fn show(context: &Context, origin: bool, json: bool) -> Result<ExitCode, RequestError> {
    let settings = context.service()?.settings(AgentChoice::default(), context.has_variables())?;
    match json {
        true => out::print_json(&shown(settings))?,
        false => out::print(&text(&shown(settings), origin)),
    }
    Ok(Code::Done.into())
}

fn shown(settings: Settings) -> ConfigListing {
    let values = settings.entries();
    let project_file = match settings.project_file {
        ProjectFile::Absent => None,
        ProjectFile::Trusted(path) => Some(Shared { path, trusted: true }),
        ProjectFile::Untrusted(path) => Some(Shared { path, trusted: false }),
    };
    ConfigListing { user_file: settings.user_file, project_file, values }
}

/// As a configuration file: keys without a value are comments.
fn text(shown: &ConfigListing, with_origin: bool) -> String {
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
