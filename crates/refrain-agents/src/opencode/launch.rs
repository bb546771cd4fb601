//! How OpenCode is started.

use refrain_core::spec::Permissions;

use super::reader::Reader;
use crate::adapter::{Adapter, Call, Dialect, Launch};
use crate::flags::{self, Flags};

/// The adapter.
#[derive(Clone, Copy, Debug)]
pub struct OpenCode;

impl Adapter for OpenCode {
    fn program(&self) -> &'static str {
        "opencode"
    }

    fn tested(&self) -> &'static [&'static str] {
        &["1.18.33"]
    }

    fn launch(&self, call: &Call<'_>) -> Launch {
        let agent = &call.spec.agent;
        let mut launch = Launch { argv: vec![flags::program(call)], ..Launch::default() };
        // The person may have written the subcommand, and options of the program before it.
        let (before, after) = match agent.args.iter().position(|argument| argument == "run") {
            Some(at) => (&agent.args[..at], &agent.args[at + 1..]),
            None => (&[][..], &agent.args[..]),
        };
        launch.argv.extend(before.iter().cloned());
        launch.argv.push("run".to_owned());
        launch.argv.extend(additions(call));
        launch.argv.extend(after.iter().cloned());
        flags::hand_over(&mut launch, call, |argv, prompt| {
            if !argv.iter().any(|argument| argument == "--") {
                argv.push("--".to_owned());
            }
            argv.push(prompt.to_owned());
        });
        // An agent that replaces its own program in the middle of a night is another agent.
        flags::set(&mut launch, agent, "OPENCODE_DISABLE_AUTOUPDATE", "1");
        launch
    }

    fn dialect(&self, _call: &Call<'_>) -> Box<dyn Dialect> {
        Box::new(Reader::default())
    }
}

/// What we add to what the person gave.
///
/// `auto` needs no flag: by default it edits and runs commands. What its configuration says to ask for is its confinement,
/// and a run that comes to that ends there and needs the person (the reader says so). `--auto`, for `full`, answers every
/// question with yes; what is denied stays denied.
fn additions(call: &Call<'_>) -> Vec<String> {
    let agent = &call.spec.agent;
    let given = Flags(&agent.args);
    let mut ours = Vec::new();
    if !given.give(&["--format"]) {
        ours.extend(["--format", "json"].map(str::to_owned));
    }
    if let Some(model) = agent.model.as_ref().filter(|_| !given.give(&["--model", "-m"])) {
        ours.extend(["--model".to_owned(), model.clone()]);
    }
    match agent.permissions {
        Permissions::Full if !given.give(&["--auto", "--dangerously-skip-permissions"]) => {
            ours.push("--auto".to_owned());
        }
        Permissions::Full | Permissions::Auto | Permissions::Agent => {}
    }
    ours
}
