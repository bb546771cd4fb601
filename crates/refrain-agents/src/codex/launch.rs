//! Starting Codex. It refuses a repeated flag.

use refrain_core::spec::Permissions;

use crate::adapter::{Call, Launch};
use crate::args::{self, Last, UserArgs};

pub(super) const MODEL: [&str; 2] = ["-m", "--model"];

/// Flags of the program itself and of `exec` that take a value, which must not be taken for the subcommand.
const VALUED: [&str; 24] = [
    "-c",
    "--config",
    "-m",
    "--model",
    "-p",
    "--profile",
    "-s",
    "--sandbox",
    "-a",
    "--ask-for-approval",
    "-C",
    "--cd",
    "-i",
    "--image",
    "-o",
    "--output-last-message",
    "--add-dir",
    "--enable",
    "--disable",
    "--local-provider",
    "--thread-source",
    "--cyber-access-program",
    "--output-schema",
    "--color",
];
const CONFIG: [&str; 2] = ["-c", "--config"];
const SANDBOX: [&str; 6] = [
    "-s",
    "--sandbox",
    "--full-auto",
    "--approve-for-me",
    "--dangerously-bypass-approvals-and-sandbox",
    "--yolo",
];
const APPROVAL: [&str; 6] = [
    "-a",
    "--ask-for-approval",
    "--full-auto",
    "--approve-for-me",
    "--dangerously-bypass-approvals-and-sandbox",
    "--yolo",
];

/// The command line: `codex [theirs] exec OURS [theirs] -`. Ours stands before a subcommand of `exec`, such as
/// `resume`, which refuses some of our options after it.
pub(super) fn launch(call: &Call<'_>) -> Launch {
    let agent = &call.spec.agent;
    let given = UserArgs::new(&agent.args);
    let (global, own) = split(&agent.args);
    let mut argv = vec![args::program(call)];
    argv.extend(global.iter().cloned());
    argv.push("exec".to_owned());
    let mut launch = Launch { argv, ..Launch::default() };
    args::add(&mut launch, given, &["--json", "--experimental-json"], None);
    // The user who started the loop has decided that this folder may be worked in.
    args::add(&mut launch, given, &["--skip-git-repo-check"], None);
    allow(call, given, &mut launch);
    if let Some(model) = agent.model.as_deref().filter(|_| configured(given, "model").is_none()) {
        args::add(&mut launch, given, &MODEL, Some(model));
    }
    if let Some(schema) = call.schema {
        args::add(&mut launch, given, &["--output-schema"], Some(schema.file.as_str()));
    }
    launch.argv.extend(own.iter().cloned());
    if args::is_prompt_on_stdin(call) {
        // A list of images would consume the dash.
        match given.has(&["-i", "--image"]) {
            true => args::push_last(call, &mut launch, Last::Word, "-"),
            false => launch.argv.push("-".to_owned()),
        }
    }
    args::hand_over(call, &mut launch, Last::Word, Last::Word);
    launch
}

/// The user's arguments before and after the subcommand `exec`, which may be omitted.
fn split(args: &[String]) -> (&[String], &[String]) {
    let word = UserArgs::new(args).first_word(&VALUED);
    match word.map(|at| (at, args[at].as_str())) {
        Some((at, "exec" | "e")) => (&args[..at], &args[at + 1..]),
        Some(_) | None => (&[], args),
    }
}

/// Removes arguments that continue another session: a subcommand of `exec`, and all after it.
pub(crate) fn begin_anew(args: &mut Vec<String>) {
    let from = args.len() - split(args).1.len();
    if let Some(word) = UserArgs::new(&args[from..]).first_word(&VALUED)
        && matches!(args[from + word].as_str(), "resume" | "fork")
    {
        args.truncate(from + word);
    }
}

fn allow(call: &Call<'_>, given: UserArgs<'_>, launch: &mut Launch) {
    let is_sandbox_theirs = given.has(&SANDBOX) || configured(given, "sandbox_mode").is_some();
    match call.spec.agent.permissions {
        Permissions::Auto => {
            if !is_sandbox_theirs {
                launch.argv.extend(["--sandbox", "workspace-write"].map(str::to_owned));
            }
            if !given.has(&APPROVAL) && configured(given, "approval_policy").is_none() {
                launch.argv.extend(["-c", "approval_policy=\"never\""].map(str::to_owned));
            }
        }
        Permissions::Full if !is_sandbox_theirs => {
            launch.argv.push("--dangerously-bypass-approvals-and-sandbox".to_owned());
        }
        Permissions::ReadOnly => {
            // Instructions that the judged agent may have written must not affect its judge.
            let settings = ["approval_policy=\"never\"", "project_doc_max_bytes=0"];
            launch.argv.extend(["--sandbox", "read-only"].map(str::to_owned));
            launch.argv.extend(settings.iter().flat_map(|setting| ["-c", setting]).map(str::to_owned));
        }
        Permissions::Full | Permissions::Agent => {}
    }
}

/// The model that the user's arguments name: a flag counts before a key of the configuration.
pub(super) fn own_model(given: UserArgs<'_>) -> Option<String> {
    let named = given.values(&MODEL).last().or_else(|| configured(given, "model"))?;
    Some(named.trim_matches(|c| c == '"' || c == '\'').to_owned())
}

/// The value of this key of the configuration, where the user sets it on the command line.
fn configured<'a>(given: UserArgs<'a>, key: &str) -> Option<&'a str> {
    let pairs = given.values(&CONFIG).filter_map(|pair| pair.split_once('='));
    pairs.filter(|(name, _)| name.trim() == key).map(|(_, value)| value.trim()).last()
}
