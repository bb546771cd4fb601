//! `refrain demo`: the main job without a key or a server. A real loop on a small repository with a failing test; the agent is
//! a script that claims to be done too early, so that the gate refuses it once.

use std::os::unix::fs::PermissionsExt;
use std::process::ExitCode;
use std::str::FromStr;
use std::{fmt, fs};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_app::options::begin::BeginArgs;
use refrain_app::options::gates::GateArgs;
use refrain_app::options::git::{Flow, GitArgs};
use refrain_app::options::work::{TaskArgs, WorkArgs};
use refrain_app::resolve::StartLoop;
use refrain_app::verbs::start::start;
use refrain_app::{Code, Context, RequestError};
use refrain_engine::{Host, chain, tool};

use crate::cmd::launch::start::launch;
use crate::out;
use crate::run::ShowArgs;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Where to make the repository [default: a new temporary folder]
    #[arg(long, value_name = "DIR")]
    dir: Option<Utf8PathBuf>,
}

const EXAMPLES: &str = "Examples:
  refrain demo
  refrain demo --dir ~/refrain-demo";

const FILES: [(&str, &str); 3] = [
    ("roman.sh", include_str!("../../../demo/roman.sh")),
    ("test.sh", include_str!("../../../demo/test.sh")),
    ("agent.sh", include_str!("../../../demo/agent.sh")),
];

/// Makes the repository, runs the loop, and prints what was done and where to look.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let dir = make(context, args)?;
    let git = |args: &[&str]| {
        tool::run("git", args, dir.as_std_path()).map_err(|error| {
            RequestError::new(Code::Failed, format!("the demo needs git: {}", chain(&error)))
        })
    };
    git(&["init", "--quiet", "--initial-branch", "main"])?;
    git(&["config", "user.name", "Refrain Demo"])?;
    git(&["config", "user.email", "demo@localhost"])?;
    git(&["add", "roman.sh", "test.sh"])?;
    git(&["commit", "--quiet", "--message", "A converter of numbers, with a failing test"])?;
    out::print(&format!("A small repository in {dir}: roman.sh, and test.sh, which fails.\n\n"));

    let prompt = "Make ./test.sh pass.";
    let gates = GateArgs { gate: vec![read("tests=./test.sh")?], ..GateArgs::default() };
    let git_args = GitArgs {
        git_workflow: Some(Flow::Commit),
        worktree: true,
        branch_template: Some(read("roman-numerals")?),
        ..GitArgs::default()
    };
    let agent = dir.join("agent.sh");
    let quoted = shlex::try_quote(agent.as_str()).unwrap_or_default();
    let options = BeginArgs {
        task: TaskArgs { prompt: Some(prompt.to_owned()), ..TaskArgs::default() },
        name: Some(read("demo")?),
        work: WorkArgs { command: Some(read(&quoted)?), gates, ..WorkArgs::default() },
        max_iterations: Some(10),
        git: git_args,
        ..BeginArgs::default()
    };
    let request = StartLoop { options, ..StartLoop::default() };
    let context = unconfigured(context, &dir);
    let started = start(&context, &request, &mut out::tell_note)?;
    let code = launch(&context, started, ShowArgs::default())?;

    let program = std::env::args_os().next().unwrap_or_else(|| "refrain".into());
    // A program called by a relative path must be found from the demo's folder, too.
    let program = match std::path::Path::new(&program) {
        path if path.components().count() > 1 => {
            std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
        }
        name => name.to_owned(),
    };
    let program = program.display();
    out::print(&format!(
        "\nThe agent claimed to be done after iteration 1. ./test.sh failed, so the claim was refused.\nIt cost nothing: the agent \
         is a script. Continue with:\n  {program} -C {dir} diff demo\n  {program} -C {dir} merge demo\n  {program} -C {dir} \
         report demo\n"
    ));
    Ok(code)
}

/// The person's surroundings without their configuration: the demo shows the same to everybody.
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

fn make(context: &Context, args: &Args) -> Result<Utf8PathBuf, RequestError> {
    let failed =
        |error: std::io::Error| RequestError::new(Code::Failed, format!("the demo's folder: {error}"));
    let dir = match &args.dir {
        Some(dir) => {
            let dir = context.dir.join(dir);
            fs::create_dir(&dir).map_err(|error| {
                RequestError::usage(format!(
                    "--dir {dir}: {error}; accepted is a new folder that you may make"
                ))
            })?;
            dir
        }
        None => {
            let dir = tempfile::Builder::new().prefix("refrain-demo-").tempdir().map_err(failed)?.keep();
            Utf8PathBuf::from_path_buf(dir)
                .map_err(|_| RequestError::new(Code::Failed, "the folder for temporary files is not UTF-8"))?
        }
    };
    for (name, text) in FILES {
        let path = dir.join(name);
        write(&path, text).map_err(failed)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(failed)?;
    }
    Ok(dir)
}

#[expect(clippy::disallowed_methods, reason = "a demo's files need no crash promise")]
fn write(path: &Utf8Path, text: &str) -> std::io::Result<()> {
    fs::write(path, text)
}
