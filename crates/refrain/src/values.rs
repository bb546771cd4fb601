//! Parsers of command line values: each error names the value and what is accepted. Also the only reader of what the
//! environment says of the terminal: other modules get parsed values.

use std::io::{IsTerminal, stderr, stdin};
use std::process::{ExitCode, Stdio};
use std::sync::OnceLock;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::tz::TimeZone;
use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_core::view::Charset;
use refrain_engine::tool::Tool;
use refrain_engine::{Brief, EngineError, ListEntry, Service, chain, found_in};
use refrain_formats::mirror::RALPH_LOOP;

use crate::out;

/// The surroundings of this process.
pub(crate) fn read_environment(dir: Option<Utf8PathBuf>) -> Result<Context, RequestError> {
    refrain_app::environment::read(dir, env!("CARGO_PKG_VERSION"))
}

/// Refuses surroundings that name no place for Refrain's data: it would go where all users can write.
pub(crate) fn check_homes(context: &Context) -> Result<(), RequestError> {
    let is_named = |name: &&str| context.variable(name).is_some_and(|it| Utf8Path::new(it).is_absolute());
    let own = ["XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"];
    match is_named(&"HOME") || own.iter().all(is_named) {
        true => Ok(()),
        false => Err(RequestError::usage(format!(
            "HOME is not set; accepted: an absolute path in HOME, or in each of {}",
            own.join(", ")
        ))),
    }
}

/// A path that is not empty.
pub(crate) fn path(text: &str) -> Result<Utf8PathBuf, String> {
    if text.is_empty() { Err("accepted: a path that is not empty".to_owned()) } else { Ok(text.into()) }
}

/// Whether `FORCE_COLOR` asks for colour without a terminal, as in programs on node. `NO_COLOR` takes precedence; the
/// output stream handles `CLICOLOR_FORCE`.
#[expect(clippy::disallowed_methods, reason = "this is the home of reading the environment")]
pub(crate) fn forces_colour() -> bool {
    let said = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    said("NO_COLOR").is_none() && said("FORCE_COLOR").is_some_and(|value| value != "0" && value != "false")
}

/// What the locale and the terminal can show: all of Unicode unless one of them says otherwise.
#[expect(clippy::disallowed_methods, reason = "this is the home of reading the environment")]
pub(crate) fn charset() -> Charset {
    static CHARSET: OnceLock<Charset> = OnceLock::new();
    *CHARSET.get_or_init(|| {
        let said = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let is_unicode = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(said).is_none_or(|locale| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        });
        match is_unicode && said("TERM").as_deref() != Some("dumb") {
            true => Charset::Unicode,
            false => Charset::Ascii,
        }
    })
}

/// The zone that this machine is in. Looking it up by name reads the whole tree of zones, which takes longer than all else
/// that `status` does; the file that says it needs no name.
#[expect(clippy::disallowed_methods, reason = "this is the home of reading the environment")]
pub(crate) fn time_zone() -> TimeZone {
    let local = || TimeZone::tzif("local", &std::fs::read("/etc/localtime").ok()?).ok();
    match std::env::var_os("TZ") {
        Some(_) => TimeZone::system(),
        None => local().unwrap_or_else(TimeZone::system),
    }
}

/// Whether a person is at the terminal, who can be asked.
pub(crate) fn can_ask(context: &Context) -> bool {
    stdin().is_terminal() && stderr().is_terminal() && !context.caller.is_attempt()
}

/// Asks a person at the terminal until they say yes or no; an empty answer is a no.
pub(crate) fn confirm(question: &str) -> Result<bool, RequestError> {
    loop {
        out::tell(question);
        match read_answer()?.to_lowercase().as_str() {
            "y" | "yes" => return Ok(true),
            "" | "n" | "no" => return Ok(false),
            _ => out::tell("Type y or n.\n"),
        }
    }
}

fn read_answer() -> Result<String, RequestError> {
    let mut answer = String::new();
    std::io::stdin()
        .read_line(&mut answer)
        .map_err(|error| RequestError::new(Code::Failed, format!("the answer cannot be read: {error}")))?;
    Ok(answer.trim().to_owned())
}

/// Asks a person at the terminal for a line; an empty one is the default.
pub(crate) fn ask(question: &str, default: &str) -> Result<String, RequestError> {
    out::tell(&format!("{question} [{default}] "));
    let answer = read_answer()?;
    Ok(if answer.is_empty() { default.to_owned() } else { answer })
}

/// The words of the user's editor; none if no variable names one.
pub(crate) fn editor(context: &Context) -> Result<Option<Vec<String>>, RequestError> {
    let Some(editor) = context.variable("VISUAL").or_else(|| context.variable("EDITOR")) else {
        return Ok(None);
    };
    let words = shlex::split(editor).filter(|words| !words.is_empty());
    // It is started in another folder than the one that it was typed in.
    let words = words.map(|mut words| {
        if words[0].contains('/') {
            words[0] = context.dir.join(&words[0]).into_string();
        }
        words
    });
    words.map(Some).ok_or_else(|| RequestError::usage(format!("EDITOR: {editor:?} is no command line")))
}

/// Runs a program of the user's at the terminal, in a folder. It is found outside of the project, where an agent writes; what
/// it runs itself is found as the user has it.
pub(crate) fn open(
    context: &Context,
    words: &[String],
    last: Option<&str>,
    dir: &Utf8Path,
) -> Result<ExitCode, RequestError> {
    let (program, options) = words.split_first().ok_or_else(|| RequestError::usage("EDITOR is empty"))?;
    let arguments = options.iter().map(String::as_str).chain(last);
    let mut tool = context.outside(Tool::own(program, dir.as_std_path()).args(arguments));
    if let Some(path) = context.variable("PATH") {
        tool = tool.with("PATH", path);
    }
    match tool.at_terminal(Stdio::inherit()) {
        Ok(true) => Ok(Code::Done.into()),
        Ok(false) => Ok(Code::Failed.into()),
        Err(error) => Err(RequestError::new(Code::Failed, chain(&error))
            .hint("VISUAL, EDITOR and SHELL name the program that is started")),
    }
}

/// The loop, or the plan, that a verb means which only reads: the one that is named, else the one that was touched last.
pub(crate) fn latest(service: &Service, id: Option<&LoopId>, verb: &str) -> Result<LoopId, RequestError> {
    if let Some(id) = id {
        return Ok(id.clone());
    }
    let loops = service.list()?;
    let readable = loops.iter().find_map(|row| match row {
        ListEntry::Loop(status) => Some(status.id.clone()),
        ListEntry::Damaged(_) => None,
    });
    // The verb says what is damaged.
    let damaged = || {
        loops.iter().find_map(|row| match row {
            ListEntry::Damaged(damaged) => damaged.id.parse().ok(),
            ListEntry::Loop(_) => None,
        })
    };
    readable.or_else(damaged).ok_or_else(|| no_loops(service, verb))
}

/// A verb without the program's name, which stands before each refusal.
pub(crate) fn bare(verb: &str) -> &str {
    verb.trim_start_matches("refrain ")
}

/// Where other systems keep the state of the loop of a project.
const FOREIGN_STATES: &[&str] =
    &[".descartes/loop-state.json", ".ralph_state.json", "loop.local.md", "state/loop.local.md", RALPH_LOOP];

fn no_loops(service: &Service, verb: &str) -> RequestError {
    let error = RequestError::usage(format!("{} without an ID: this project has no loops", bare(verb)));
    let root = &service.project().root;
    let foreign = FOREIGN_STATES.iter().filter(|file| found_in(&root.join(file)).is_ok());
    let error = foreign.fold(error, |error, file| {
        error.hint(format!("{file} shows one of another system: refrain resume --from {file} continues it"))
    });
    error.hint("refrain start begins one")
}

const SHOWN: usize = 5;

/// The loop, or the plan, that a verb means which changes something: the one that is named, else the only one that it could
/// mean; `none` says what is missing if there is none.
pub(crate) fn only_one(
    service: &Service,
    id: Option<&LoopId>,
    (verb, none): (&str, &str),
    is_candidate: impl Fn(&Brief) -> bool,
) -> Result<LoopId, RequestError> {
    if let Some(id) = id {
        return Ok(id.clone());
    }
    let loops = service.list()?;
    let (mut candidates, mut damaged) = (Vec::new(), Vec::new());
    for row in &loops {
        match row {
            ListEntry::Loop(status) if is_candidate(status) => candidates.push(status.as_ref()),
            ListEntry::Loop(_) => {}
            ListEntry::Damaged(row) => damaged.extend(row.id.parse::<LoopId>()),
        }
    }
    match candidates.as_slice() {
        [only] => Ok(only.id.clone()),
        // The verb reports the damage.
        [] if damaged.len() == loops.len() && damaged.len() == 1 => Ok(damaged.remove(0)),
        [] if !damaged.is_empty() => {
            let damaged: Vec<_> = damaged.iter().map(|id| (id, "damaged".to_owned())).collect();
            Err(several("refrain verify", "damaged loops", &damaged))
        }
        [] if loops.is_empty() => Err(no_loops(service, verb)),
        [] => {
            let error = format!("{} without an ID: {none}", bare(verb));
            Err(RequestError::usage(error).hint("refrain list shows what there is"))
        }
        found => {
            let at = |status: &Brief| format!("{} at iteration {}", status.status.as_str(), status.iteration);
            let found: Vec<_> = found.iter().map(|status| (&status.id, at(status))).collect();
            Err(several(verb, "loops", &found))
        }
    }
}

/// Prints the status object of a loop, or a plan, that is damaged.
pub(crate) fn print_damaged(
    service: &Service,
    id: &LoopId,
    error: EngineError,
) -> Result<ExitCode, RequestError> {
    let Some(damaged) = service.damaged_status(id, &error) else { return Err(error.into()) };
    crate::out::print_json(&damaged)?;
    Ok(Code::Failed.into())
}

/// The error of a verb with several candidates: each with its status, and what to type.
pub(crate) fn several(verb: &str, kind: &str, found: &[(&LoopId, String)]) -> RequestError {
    let error = RequestError::usage(format!("{} needs an ID: {} {kind} match", bare(verb), found.len()));
    let error = match found.len() {
        0..=SHOWN => error.hint("accepted: one of these"),
        _ => error.hint("accepted: one of these, or another that refrain list shows"),
    };
    let shown = found.iter().take(SHOWN);
    shown.fold(error, |error, (id, how)| error.choice(format!("{verb} {id}   {how}")))
}
