//! How Gemini CLI is started.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use refrain_core::spec::Permissions;

use super::reader::Reader;
use crate::adapter::{Adapter, Call, Dialect, Launch};
use crate::flags::{self, Flags};

/// The adapter.
#[derive(Clone, Copy, Debug)]
pub struct Gemini;

impl Adapter for Gemini {
    fn program(&self) -> &'static str {
        "gemini"
    }

    fn tested(&self) -> &'static [&'static str] {
        &["0.61.0"]
    }

    fn launch(&self, call: &Call<'_>) -> Launch {
        let agent = &call.spec.agent;
        let mut launch = Launch { argv: vec![flags::program(call)], ..Launch::default() };
        launch.argv.extend(additions(call));
        launch.argv.extend(agent.args.iter().cloned());
        // In one piece: a prompt that begins with a dash would be taken for a flag.
        flags::hand_over(&mut launch, call, |argv, prompt| argv.push(format!("--prompt={prompt}")));
        flags::set(&mut launch, agent, "GEMINI_CLI_NO_RELAUNCH", "true");
        // Without trust in the folder it does not start at all; that question is the person's with `agent`.
        match agent.permissions {
            Permissions::Auto | Permissions::Full => {
                flags::set(&mut launch, agent, "GEMINI_CLI_TRUST_WORKSPACE", "true");
            }
            Permissions::Agent => {}
        }
        launch
    }

    fn dialect(&self, call: &Call<'_>) -> Box<dyn Dialect> {
        Box::new(Reader::new(call.prompt.len()))
    }
}

/// What we add to what the person gave.
///
/// `auto` and `full` are the same here: in any mode but `--yolo` the shell tool is not even offered to the model, so
/// nothing less can run a test. Its own confinement (`--sandbox`) needs a container engine; who has one gives that flag.
fn additions(call: &Call<'_>) -> Vec<String> {
    let agent = &call.spec.agent;
    let given = Flags(&agent.args);
    let mut ours = Vec::new();
    if !given.give(&["--output-format", "-o"]) {
        ours.extend(["--output-format", "stream-json"].map(str::to_owned));
    }
    if let Some(model) = agent.model.as_ref().filter(|_| !given.give(&["--model", "-m"])) {
        ours.extend(["--model".to_owned(), model.clone()]);
    }
    match agent.permissions {
        Permissions::Auto | Permissions::Full
            if !given.give(&["--yolo", "-y", "--approval-mode", "--allowed-tools"]) =>
        {
            ours.push("--yolo".to_owned());
        }
        Permissions::Auto | Permissions::Full | Permissions::Agent => {}
    }
    ours
}

/// The lock (a folder) that a run leaves behind, by the environment that it is given.
#[must_use]
pub fn lock(env: &[(OsString, OsString)]) -> Option<PathBuf> {
    let value = |wanted: &str| {
        let last = env.iter().rev().find(|(name, _)| name == wanted);
        last.map(|(_, value)| value).filter(|value| !value.is_empty())
    };
    let home = value("GEMINI_CLI_HOME").or_else(|| value("HOME"))?;
    Some(Path::new(home).join(".gemini/projects.json.lock"))
}
