use refrain_core::spec::Permissions;

use crate::adapter::{Call, Launch};
use crate::args::{self, Last, UserArgs};

pub(super) const MODEL: [&str; 1] = ["--model"];

/// Tools that `auto` allows without a question: edit files and run commands. Reading is always allowed.
const TOOLS: &str = "Bash,Edit,Write,NotebookEdit";
/// The tools of a judge, and those that it does not get even if they are allowed in general.
const READING: [&str; 4] = ["--tools", "Read,Glob,Grep", "--disallowedTools", "Bash,Edit,Write,NotebookEdit"];
/// Files that the judged agent may have written into the project (settings, hooks, tool servers, instructions) must
/// not affect its judge.
const OWN_SETTINGS: [&str; 3] = ["--strict-mcp-config", "--setting-sources", "user"];
const PERMISSION_FLAGS: [&str; 3] =
    ["--permission-mode", "--dangerously-skip-permissions", "--allow-dangerously-skip-permissions"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Events, or only the last of them: `stream-json`, `json`.
    Json,
    Text,
}

/// Its output format: events, unless the user wants text.
pub(super) fn format(call: &Call<'_>) -> Format {
    match UserArgs::new(&call.spec.agent.args).values(&["--output-format"]).last() {
        Some("text") => Format::Text,
        Some(_) | None => Format::Json,
    }
}

/// Whether it prints its events as they happen.
pub(super) fn is_live(call: &Call<'_>) -> bool {
    is_stream(UserArgs::new(&call.spec.agent.args))
}

/// The command line. Our flags come first: the last of a repeated flag counts. None of our list options is last,
/// because it would consume the user's next word.
pub(super) fn launch(call: &Call<'_>) -> Launch {
    let agent = &call.spec.agent;
    let given = UserArgs::new(&agent.args);
    let mut launch = Launch { argv: vec![args::program(call)], ..Launch::default() };
    args::add(&mut launch, given, &["-p", "--print"], None);
    if is_stream(given) {
        args::add(&mut launch, given, &["--output-format"], Some("stream-json"));
        // Without it the stream is refused.
        args::add(&mut launch, given, &["--verbose"], None);
        if call.capped {
            args::add(&mut launch, given, &["--include-partial-messages"], None);
        }
    }
    allow(call, given, &mut launch);
    if let Some(schema) = call.schema {
        args::add(&mut launch, given, &["--json-schema"], Some(schema.text));
    }
    if let Some(budget) = call.budget {
        args::add(&mut launch, given, &["--max-budget-usd"], Some(&f64::from(budget).to_string()));
    }
    if let Some(model) = &agent.model {
        args::add(&mut launch, given, &MODEL, Some(model));
    }
    launch.argv.extend(agent.args.iter().cloned());
    args::hand_over(call, &mut launch, Last::Word, Last::Word);
    // By default it retries ten times, for minutes, before it reports that its provider is gone; waiting is the
    // loop's task.
    args::set_env(call, &mut launch, &[("CLAUDE_CODE_MAX_RETRIES", "1"), ("DISABLE_AUTOUPDATER", "1")]);
    launch
}

fn is_stream(given: UserArgs<'_>) -> bool {
    given.values(&["--output-format"]).last().is_none_or(|format| format == "stream-json")
}

fn allow(call: &Call<'_>, given: UserArgs<'_>, launch: &mut Launch) {
    let is_theirs = given.has(&PERMISSION_FLAGS);
    match call.spec.agent.permissions {
        Permissions::Auto if !is_theirs => {
            args::add(launch, given, &["--allowedTools", "--allowed-tools"], Some(TOOLS));
            args::add(launch, given, &["--permission-mode"], Some("acceptEdits"));
        }
        Permissions::Full => {
            if !is_theirs {
                launch.argv.push("--dangerously-skip-permissions".to_owned());
            }
            if call.root {
                // As root it refuses otherwise.
                args::set_env(call, launch, &[("IS_SANDBOX", "1")]);
            }
        }
        Permissions::ReadOnly => {
            launch.argv.extend(READING.iter().chain(&OWN_SETTINGS).map(|&arg| arg.to_owned()));
        }
        Permissions::Auto | Permissions::Agent => {}
    }
}
