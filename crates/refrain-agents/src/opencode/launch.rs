use refrain_core::spec::Permissions;

use super::reader::Reader;
use crate::adapter::{Adapter, Call, Launch, StreamDecoder};
use crate::args::{self, Last, UserArgs};

/// The flag of the output format, and the required value.
const FORMAT: [&str; 1] = ["--format"];
const STREAM: &str = "json";
const MODEL: [&str; 2] = ["--model", "-m"];

#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenCode;

impl Adapter for OpenCode {
    fn tested(&self) -> &'static [&'static str] {
        &["1.18.33"]
    }

    fn launch(&self, call: &Call<'_>) -> Launch {
        let agent = &call.spec.agent;
        let given = UserArgs::new(&agent.args);
        let mut launch = Launch { argv: vec![args::program(call)], ..Launch::default() };
        // The user's arguments may contain the subcommand, and options of the program before it.
        let (before, after) = match agent.args.iter().position(|argument| argument == "run") {
            Some(at) => (&agent.args[..at], &agent.args[at + 1..]),
            None => (&[][..], &agent.args[..]),
        };
        launch.argv.extend(before.iter().cloned());
        launch.argv.push("run".to_owned());
        args::add(&mut launch, given, &FORMAT, Some(STREAM));
        if let Some(model) = &agent.model {
            args::add(&mut launch, given, &MODEL, Some(model));
        }
        allow(call, given, &mut launch);
        launch.argv.extend(after.iter().cloned());
        args::hand_over(call, &mut launch, Last::Word, Last::Bare);
        // An agent that updates itself in the middle of a night is another agent.
        args::set_env(call, &mut launch, &[("OPENCODE_DISABLE_AUTOUPDATE", "1")]);
        launch
    }

    fn dialect(&self, _call: &Call<'_>) -> Box<dyn StreamDecoder> {
        Box::new(Reader::default())
    }

    fn objection(&self, args: &[String]) -> Option<String> {
        UserArgs::new(args).objection("opencode", &FORMAT, STREAM)
    }

    fn model_flags(&self) -> &'static [&'static str] {
        &MODEL
    }
}

/// The permissions of a judge: they replace all configured ones, and files that the judged agent may have written
/// into the project have no effect.
pub(crate) fn reading() -> [(String, String); 2] {
    let denied =
        r#"{"edit":"deny","bash":"deny","task":"deny","webfetch":"deny","external_directory":"deny"}"#;
    [("OPENCODE_PERMISSION", denied), ("OPENCODE_DISABLE_PROJECT_CONFIG", "1")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
}

/// Its permissions.
///
/// `auto` needs no flag: by default it edits and runs commands. Permissions of `ask` in its configuration are its
/// confinement, and a run that reaches one ends there and needs the user (the reader reports it). `--auto`, for
/// `full`, answers every question with yes; what is denied stays denied.
fn allow(call: &Call<'_>, given: UserArgs<'_>, launch: &mut Launch) {
    match call.spec.agent.permissions {
        Permissions::Full => args::add(launch, given, &["--auto", "--dangerously-skip-permissions"], None),
        Permissions::ReadOnly => launch.env.extend(reading()),
        Permissions::Auto | Permissions::Agent => {}
    }
}
