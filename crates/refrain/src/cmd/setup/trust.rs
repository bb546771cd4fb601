use std::io::{IsTerminal, stdin};
use std::process::ExitCode;

use owo_colors::OwoColorize;
use refrain_app::plan::SourceArgs;
use refrain_app::trust::Trustable;
use refrain_app::{Action, Code, Context, RequestError};
use refrain_core::text::{clip, printable};
use refrain_engine::config::Entry;
use refrain_engine::{EngineError, Trust};

use crate::{out, values};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain trust
  refrain trust --show")]
pub(crate) struct Args {
    /// Show what would be trusted, with its hash, and change nothing
    #[arg(long, conflicts_with_all = ["list", "revoke", "hash"])]
    show: bool,
    /// Trust exactly what refrain trust --show prints with this hash
    #[arg(long, value_name = "HASH", conflicts_with_all = ["list", "revoke"])]
    hash: Option<String>,
    /// List what is trusted, of every project
    #[arg(long, conflicts_with = "revoke")]
    list: bool,
    /// Trust nothing of this project any more
    #[arg(long)]
    revoke: bool,
    #[command(flatten)]
    source: SourceArgs,
    /// Print an array
    #[arg(long)]
    json: bool,
}

impl Args {
    /// The verb's action, for [`Action::permission`].
    pub(crate) fn action(&self) -> Action {
        if self.list || self.show { Action::Look } else { Action::Trust }
    }
}

/// Shows everything that the repository would run and set, and trusts it if the user at a terminal or a hash confirms
/// it.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    let trust = Trust::new(&context.host.state_home);
    if args.list {
        return list(&trust, args.json);
    }
    let project = service.project();
    if args.revoke {
        let count = trust.revoke(&project.root).map_err(EngineError::from)?;
        out::print(&match count {
            0 => "Nothing of this project was trusted.\n".to_owned(),
            1 => "Nothing of this project is trusted now: 1 record was removed.\n".to_owned(),
            count => format!("Nothing of this project is trusted now: {count} records were removed.\n"),
        });
        return Ok(Code::Done.into());
    }
    let found = Trustable::of(context, &service, &args.source)?;
    if found.is_empty() {
        let error =
            format!("there is no refrain.toml in {}, and no file that names a command", project.worktree);
        return Err(RequestError::usage(error).hint("refrain docs configuration says what can be in it"));
    }
    let shown = shown(&found)?;
    let hash = found.hash();
    if let Some(given) = args.hash.as_ref().filter(|given| **given != hash) {
        let error = format!("--hash {given}: what is there now has the hash {hash}");
        return Err(RequestError::usage(error).hint("refrain trust --show shows it"));
    }
    if found.is_trusted(&service) {
        out::print(&format!("All of this is trusted already.\n{shown}"));
        return Ok(Code::Done.into());
    }
    if args.hash.is_none() {
        out::print(&format!("{shown}hash {hash}\n"));
    }
    if args.show {
        return Ok(Code::Done.into());
    }
    if args.hash.is_none() {
        if !stdin().is_terminal() {
            let error =
                "refrain trust without a terminal: accepted: --hash with what refrain trust --show prints";
            return Err(RequestError::usage(error).hint(format!("refrain trust --hash {hash}")));
        }
        if !values::confirm("Trust it? [y/N] ")? {
            return Err(RequestError::new(Code::Failed, "it is not trusted; nothing was changed"));
        }
    }
    // Grants the content that was shown, or that has that hash, even if the file has changed since.
    found.grant(&service)?;
    out::print("It counts from now on, until it is changed. refrain trust --revoke takes that back.\n");
    Ok(Code::Done.into())
}

/// Everything that the repository would do once it is trusted.
fn shown(found: &Trustable) -> Result<String, RequestError> {
    let flat = |text: &str| printable(text).replace('\n', " ");
    let mut text = String::new();
    if let Some(file) = &found.file {
        // A file with errors needs no decision.
        text.push_str(&format!("{} would\n{}", flat(file.path.as_str()), allows(&file.entries()?)));
    }
    if !found.commands.is_empty() {
        text.push_str("Commands of this repository, run if a loop or a plan asks for them:\n");
        for it in &found.commands {
            text.push_str(&format!("  {}   ({})\n", flat(&it.command), flat(&it.from)));
        }
    }
    Ok(text)
}

fn list(trust: &Trust, json: bool) -> Result<ExitCode, RequestError> {
    let trusted = trust.list();
    if json {
        out::print_json(&trusted)?;
    } else if trusted.is_empty() {
        out::print("Nothing is trusted.\n");
    }
    for it in trusted.iter().filter(|_| !json) {
        let project = printable(it.project.as_str()).replace('\n', " ");
        let what = it.command.as_deref().map_or("refrain.toml".to_owned(), |command| format!("{command:?}"));
        let (at, hash) = (it.at.strftime("%Y-%m-%d %H:%M"), it.hash.get(..16).unwrap_or_default());
        out::print(&format!("{at}  {hash}  {project}  {}\n", printable(&what)));
    }
    Ok(Code::Done.into())
}

/// The longest value shown, in bytes: only prompts are longer, and their beginning identifies them.
const SHOWN: usize = 2000;

/// All entries of the file: first commands, then their inputs, then the rest.
fn allows(entries: &[Entry]) -> String {
    let mut text = String::new();
    for (says, heading) in
        [(KeyRisk::Run, "run"), (KeyRisk::Give, "give to what it runs"), (KeyRisk::Set, "set")]
    {
        let of = entries.iter().filter(|entry| KeyRisk::of(&entry.key) == says).peekable();
        let lines: String = of.map(line).collect();
        if !lines.is_empty() {
            text.push_str(&format!("{}\n{lines}", heading.bold()));
        }
    }
    if text.is_empty() { "do nothing: it is empty\n".to_owned() } else { text }
}

fn line(Entry { key, value, .. }: &Entry) -> String {
    let flat = |text: &str| printable(text).replace('\n', " ");
    let value = value.as_ref().map(ToString::to_string).unwrap_or_default();
    format!("  {} = {}\n", flat(key), flat(&clip(&value, SHOWN)))
}

/// The subject of a key, the most dangerous first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyRisk {
    Run,
    Give,
    Set,
}

impl KeyRisk {
    /// The names of tables and keys have no dots; those of agents, prompts and variables may, and are between them.
    fn of(key: &str) -> Self {
        let last = key.rsplit('.').next().unwrap_or_default();
        match (key.split('.').next().unwrap_or_default(), last) {
            ("start", "agent" | "command")
            | ("agents", "kind" | "command")
            | ("gates", "command" | "reviewer")
            | ("critique", "critic")
            | ("plan", "verify")
            | ("notify", "command") => Self::Run,
            ("start", "agent-arg" | "model" | "permissions" | "prompt-name" | "clean-env")
            | ("agents" | "prompts", _) => Self::Give,
            ("start", _) if key.starts_with("start.env.") => Self::Give,
            _ => Self::Set,
        }
    }
}

#[cfg(test)]
mod tests {
    use refrain_engine::config::ConfigFile;

    use super::*;

    #[test]
    fn all_keys_of_a_file_are_shown_with_commands_first() {
        let text = "[git]\nworkflow = 'commit'\nworktree = true\n[start]\nmax-cost = 5\nagent = 'work'\nenv = { A = 'hidden' }\n\
            permissions = 'full'\n[agents.work]\ncommand = ['x', 'a b']\nargs = '-y'\n[gates.test]\ncommand = 'cargo test'\n\
            retries = 2\n[notify]\ncommand = \"ntfy \\u0007\"\n[prompts.fix]\ntext = 'Mend it.'\n[prices.m]\ninput = 1\noutput = 2\n";
        let file = ConfigFile { path: "/p/refrain.toml".into(), text: text.into() };
        let shown = anstream::adapter::strip_str(&allows(&file.entries().unwrap())).to_string();
        let expected = "run\n  agents.work.command = [\"x\",\"a b\"]\n  gates.test.command = \"cargo test\"\n  \
            notify.command = \"ntfy \\u0007\"\n  start.agent = \"work\"\n\
            give to what it runs\n  agents.work.args = \"-y\"\n  prompts.fix.text = \"Mend it.\"\n  \
            start.env.A = \"[redacted]\"\n  start.permissions = \"full\"\n\
            set\n  gates.test.retries = 2\n  git.workflow = \"commit\"\n  git.worktree = true\n  prices.m.input = 1\n  \
            prices.m.output = 2\n  start.max-cost = 5\n";
        assert_eq!(shown, expected);
    }

    #[test]
    fn an_empty_file_sets_nothing() {
        assert_eq!(allows(&[]), "do nothing: it is empty\n");
    }
}
