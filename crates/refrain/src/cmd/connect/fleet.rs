//! The fleet: its program is another one, `refrain-fleet`, which is called as git calls its own. The words of `refrain fleet`
//! and `refrain worker` are parsed here, and done there.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use refrain_app::options::fleet::PROGRAM;
use refrain_app::resolve::StartLoop;
use refrain_app::verbs::fleet::{self as app, FleetRequest};
use refrain_app::verbs::start::{PreparedLoop, prepare};
use refrain_app::{Action, Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_core::text::printable;
use refrain_core::view::checkup::Finding;
use refrain_engine::tool::{Tool, ToolOutput};
use refrain_engine::{LogStore, Service, chain};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::out;
use crate::run::{self, ShowArgs};

/// How long the program may take to reach its server.
const LIMIT: Duration = Duration::from_secs(60);

/// Where the fleet has its loops, as the program says it.
#[derive(Deserialize)]
struct FleetState {
    state: String,
}

#[derive(Serialize)]
struct Submitted<'a> {
    id: &'a LoopId,
    state: &'a str,
}

/// The program: beside this one, or in PATH.
fn program(context: &Context) -> Result<PathBuf, RequestError> {
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(|own| own.parent()).map(|folder| folder.join(PROGRAM));
    beside.filter(|path| path.is_file()).or_else(|| context.program(PROGRAM)).ok_or_else(|| {
        let error = format!("a fleet needs the program {PROGRAM}: it is neither beside refrain nor in PATH");
        RequestError::usage(error)
            .hint("from the sources: cargo install --path fleet; refrain docs fleet says more")
    })
}

/// Becomes the program of the fleet, with these words.
fn become_program(context: &Context, words: &[String]) -> Result<ExitCode, RequestError> {
    use std::os::unix::process::CommandExt;
    let program = program(context)?;
    #[expect(clippy::disallowed_methods, reason = "this process becomes that program: none is started")]
    let error = std::process::Command::new(&program).arg("-C").arg(&context.dir).args(words).exec();
    Err(RequestError::new(Code::Failed, format!("{} cannot be started: {error}", program.display())))
}

/// Runs the program of the fleet to its end; its complaint is ours.
pub(super) fn call(context: &Context, words: &[&str]) -> Result<ToolOutput, RequestError> {
    let program = program(context)?;
    let tool = Tool::own(&program, context.dir.as_std_path()).args(["-C", context.dir.as_str()]).args(words);
    let done = tool.limit(LIMIT).run().map_err(|error| RequestError::new(Code::Failed, chain(&error)))?;
    if done.status.success() {
        return Ok(done);
    }
    let complaint = String::from_utf8_lossy(&done.stderr);
    let mut lines = complaint.lines().map(|line| line.trim_start_matches("refrain: ").trim());
    let code = match done.status.code() {
        Some(2) => Code::Usage,
        Some(3) => Code::NotFound,
        Some(17) => Code::Refused,
        Some(_) | None => Code::Failed,
    };
    let error = RequestError::new(code, printable(lines.next().unwrap_or_default()).into_owned());
    Err(lines.fold(error, |error, line| error.hint(printable(line).into_owned())))
}

/// A bucket that has the long logs of loops: the program of the fleet reads it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogBucket<'a> {
    pub(crate) context: &'a Context,
    pub(crate) address: &'a str,
}

impl LogStore for LogBucket<'_> {
    fn address(&self) -> &str {
        self.address
    }

    fn put(&self, _: &str, _: &[u8]) -> Result<(), String> {
        Err("only workers write to it".to_owned())
    }

    fn get(&self, hash: &str, bytes: u64) -> Result<Option<Vec<u8>>, String> {
        match call(self.context, &["blob", hash, &bytes.to_string()]) {
            Ok(done) => Ok(Some(done.stdout)),
            Err(error) if error.code() == Code::NotFound => Ok(None),
            Err(error) => Err(error.line().to_string()),
        }
    }
}

/// What the program finds of the fleet.
pub(crate) fn examine(context: &Context) -> Result<Vec<Finding>, RequestError> {
    answer(context, "doctor")
}

/// The JSON that the program prints for a verb.
fn answer<T: DeserializeOwned>(context: &Context, verb: &str) -> Result<T, RequestError> {
    let printed = call(context, &[verb])?.stdout;
    serde_json::from_slice(&printed)
        .map_err(|error| RequestError::new(Code::Failed, format!("{PROGRAM} is of another version: {error}")))
}

/// Becomes that program, with what was typed from the verb on.
pub(crate) fn run(context: &Context) -> Result<ExitCode, RequestError> {
    let words = std::env::args().skip(1).skip_while(|word| !matches!(word.as_str(), "fleet" | "worker"));
    become_program(context, &words.collect::<Vec<_>>())
}

/// Where the fleet has its loops, if it can be reached.
pub(super) fn state(context: &Context) -> Result<String, RequestError> {
    answer(context, "check").map(|found: FleetState| found.state)
}

/// Starts a loop and hands it to the fleet. Nothing is begun where the fleet cannot be reached.
pub(crate) fn start(
    context: &Context,
    request: &mut StartLoop,
    show: &ShowArgs,
) -> Result<ExitCode, RequestError> {
    let place = adapt(context, request)?;
    submit(context, prepare(context, request, &mut out::tell_note)?, &place, show)
}

/// Makes a request one for the fleet; returns where that has its loops.
pub(crate) fn adapt(context: &Context, request: &mut StartLoop) -> Result<String, RequestError> {
    context.check(Action::Start)?;
    context.check(Action::Move)?;
    app::adapt(request)?;
    state(context)
}

/// Starts a loop that was prepared, and hands it to the fleet.
pub(crate) fn submit(
    context: &Context,
    prepared: PreparedLoop,
    place: &str,
    show: &ShowArgs,
) -> Result<ExitCode, RequestError> {
    app::check(&prepared.spec, place)?;
    let agent = prepared.spec.agent.kind.to_string();
    let started = prepared.start(context, &mut out::tell_note)?;
    let id = started.runner.id().clone();
    let to = (place, context.dir.as_path());
    let away = run::runtime()?.block_on(started.service.submit(started.runner, to))?;
    let given = call(context, &["submit", id.as_str(), &away.url, &agent]);
    given.map_err(|error| {
        let again = format!("it waits at {}: {PROGRAM} submit {id} {} {agent}", away.url, away.url);
        error.hint(printable(&again).into_owned())
    })?;
    if show.json {
        out::print_json(&Submitted { id: &id, state: &away.url })?;
    } else if !show.quiet {
        out::print(&format!("{id}\n"));
        let next = format!("refrain status {id}, refrain pause {id}, refrain cancel {id}");
        out::tell_line("", &format!("it is given to the fleet: {next}"));
    }
    Ok(Code::Done.into())
}

/// Passes a request on, if the loop is on the fleet. Without the program of the fleet, loops that left are on no fleet.
pub(crate) fn ask(
    context: &Context,
    service: &Service,
    (id, action): (&LoopId, Action),
    request: impl FnOnce() -> Result<FleetRequest, RequestError>,
) -> Result<Option<ExitCode>, RequestError> {
    let Some(remote) = app::remote_of(service, id).filter(|_| program(context).is_ok()) else {
        return Ok(None);
    };
    context.check_on(action, service, id)?;
    let asked = pass_on(context, (id, &remote), &request()?)?;
    out::print(&printable(&String::from_utf8_lossy(&asked.stdout)));
    Ok(Some(Code::Done.into()))
}

/// Gives a request to the server.
pub(super) fn pass_on(
    context: &Context,
    (id, remote): (&LoopId, &str),
    request: &FleetRequest,
) -> Result<ToolOutput, RequestError> {
    let request =
        serde_json::to_string(request).map_err(|error| RequestError::new(Code::Failed, error.to_string()))?;
    call(context, &["ask", id.as_str(), remote, &request])
}
