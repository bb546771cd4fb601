//! `refrain demo`: the main jobs without a key or a server, in a repository of their own. The agents are scripts.
//!
//! Plain, a claim is made too early and refused by a gate; with `--crash`, the runner is killed and the loop resumed;
//! with `--plan`, a plan of three tasks runs.

use std::os::unix::fs::PermissionsExt;
use std::process::ExitCode;
use std::str::FromStr;
use std::{fmt, fs};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_app::options::begin::BeginArgs;
use refrain_app::options::gates::GateArgs;
use refrain_app::options::git::GitArgs;
use refrain_app::options::work::{TaskArgs, WorkArgs};
use refrain_app::resolve::StartLoop;
use refrain_app::verbs::start::{StartedLoop, start};
use refrain_app::{Code, Context, RequestError};
use refrain_core::git::Workflow;
use refrain_engine::{DEMO_PREFIX, Host, chain, tool};

use crate::cmd::launch::start::launch;
use crate::out;
use crate::run::ShowArgs;

mod crash;
mod plan;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain demo
  refrain demo --crash")]
pub(crate) struct Args {
    /// Kill Refrain with kill -9 while the agent works, and resume the loop
    #[arg(long, conflicts_with = "plan")]
    crash: bool,
    /// Run a plan of three tasks
    #[arg(long)]
    plan: bool,
    /// Where to make the repository [default: a new temporary folder]
    #[arg(long, value_name = "DIR")]
    dir: Option<Utf8PathBuf>,
}

/// The files of the loop's repository; the agent is not committed.
const FILES: [(&str, &str); 3] = [
    ("roman.sh", include_str!("../../../demo/roman.sh")),
    ("test.sh", include_str!("../../../demo/test.sh")),
    ("agent.sh", include_str!("../../../demo/agent.sh")),
];

/// Makes the repository, runs the demo, and prints what was done and where to look.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let dir = folder(context, args.dir.as_deref())?;
    let shown = show(&unconfigured(context, &dir), args, &dir);
    if shown.is_err() && args.dir.is_none() {
        let _ = fs::remove_dir_all(&dir);
    }
    shown
}

fn show(context: &Context, args: &Args, dir: &Utf8Path) -> Result<ExitCode, RequestError> {
    if args.plan {
        return plan::run(context, dir);
    }
    repository(dir, &FILES, "A converter of numbers, with a failing test")?;
    out::print(&format!("A small repository in {dir}: roman.sh, and test.sh, which fails.\n\n"));
    if args.crash {
        return crash::run(context, dir);
    }
    let code = launch(context, begin(context, dir)?, ShowArgs::default())?;
    out::print(&closing(
        code,
        "The agent claimed to be done after iteration 1. ./test.sh failed, so the claim was refused.\nIt cost nothing: the agent \
         is a script.",
        dir,
    ));
    Ok(code)
}

/// The closing text: what the demo showed, or that it failed, and how to remove its folder.
fn closing(code: ExitCode, shown: &str, dir: &Utf8Path) -> String {
    let shown = if code == ExitCode::SUCCESS {
        shown
    } else {
        "The demo did not come to its end, for the reason above."
    };
    let dir = shlex::try_quote(dir.as_str()).unwrap_or_default();
    format!(
        "\n{shown}\nGo there, type what `next:` names, and remove it when you have seen enough:\n  cd {dir}\n  rm -r {dir}\n"
    )
}

fn begin(context: &Context, dir: &Utf8Path) -> Result<StartedLoop, RequestError> {
    let gates = GateArgs { gate: vec![read("tests=./test.sh")?], ..GateArgs::default() };
    let git_args = GitArgs {
        git_workflow: Some(Workflow::Commit),
        worktree: true,
        branch_template: Some(read("roman-numerals")?),
        ..GitArgs::default()
    };
    let options = BeginArgs {
        task: TaskArgs { prompt: Some("Make ./test.sh pass.".to_owned()), ..TaskArgs::default() },
        name: Some(read("demo")?),
        work: WorkArgs { gates, ..agent(dir)? },
        max_iterations: Some(10),
        git: git_args,
        ..BeginArgs::default()
    };
    start(context, &StartLoop { options, ..StartLoop::default() }, &mut out::tell_note)
}

/// The demo's agent, as the options say it.
fn agent(dir: &Utf8Path) -> Result<WorkArgs, RequestError> {
    let agent = dir.join("agent.sh");
    let quoted = shlex::try_quote(agent.as_str()).unwrap_or_default();
    Ok(WorkArgs { command: Some(read(&quoted)?), ..WorkArgs::default() })
}

/// The person's surroundings without their configuration: the demo shows the same to all users.
fn unconfigured(context: &Context, dir: &Utf8Path) -> Context {
    let env = context.host.env.iter().filter(|(name, _)| !name.to_string_lossy().starts_with("REFRAIN_"));
    // A folder of that repository that holds no configuration.
    let host =
        Host { env: env.cloned().collect(), config_home: dir.join(".git/refrain"), ..context.host.clone() };
    Context { dir: dir.to_owned(), host, ..context.clone() }
}

/// A value that the demo gives itself.
fn read<T: FromStr<Err: fmt::Display>>(text: &str) -> Result<T, RequestError> {
    text.parse().map_err(|error| RequestError::new(Code::Failed, format!("{text}: {error}")))
}

fn failed(error: std::io::Error) -> RequestError {
    RequestError::new(Code::Failed, format!("the demo's folder: {error}"))
}

fn folder(context: &Context, named: Option<&Utf8Path>) -> Result<Utf8PathBuf, RequestError> {
    if let Some(dir) = named {
        let dir = context.dir.join(dir);
        fs::create_dir(&dir).map_err(|error| {
            RequestError::usage(format!("--dir {dir}: {error}; accepted: a new folder that you may make"))
        })?;
        return Ok(dir);
    }
    let dir = tempfile::Builder::new().prefix(DEMO_PREFIX).tempdir().map_err(failed)?.keep();
    Utf8PathBuf::from_path_buf(dir)
        .map_err(|_| RequestError::new(Code::Failed, "the folder for temporary files is not UTF-8"))
}

/// Makes the repository: all files but the agent are committed.
fn repository(dir: &Utf8Path, files: &[(&str, &str)], message: &str) -> Result<(), RequestError> {
    for (name, text) in files {
        let path = dir.join(name);
        write(&path, text).map_err(failed)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(failed)?;
    }
    let git = |args: &[&str]| {
        tool::run("git", args, dir.as_std_path()).map_err(|error| {
            RequestError::new(Code::Failed, format!("the demo needs git: {}", chain(&error)))
        })
    };
    git(&["init", "--quiet", "--initial-branch", "main"])?;
    git(&["config", "user.name", "Refrain Demo"])?;
    git(&["config", "user.email", "demo@localhost"])?;
    let committed = files.iter().map(|(name, _)| *name).filter(|name| *name != "agent.sh");
    git(&["add"].into_iter().chain(committed).collect::<Vec<_>>())?;
    git(&["commit", "--quiet", "--message", message])?;
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a demo's files need no crash promise")]
fn write(path: &Utf8Path, text: &str) -> std::io::Result<()> {
    fs::write(path, text)
}
