use std::ffi::OsString;
use std::path::{Path, PathBuf};

use refrain_core::spec::Permissions;

use super::reader::Reader;
use crate::adapter::{Adapter, Call, Launch, StreamDecoder};
use crate::args::{self, Last, UserArgs};

/// The flag of the output format, and the required value.
const FORMAT: [&str; 2] = ["--output-format", "-o"];
const STREAM: &str = "stream-json";
const MODEL: [&str; 2] = ["--model", "-m"];

#[derive(Clone, Copy, Debug)]
pub(crate) struct Gemini;

impl Adapter for Gemini {
    fn tested(&self) -> &'static [&'static str] {
        &["0.61.0"]
    }

    fn launch(&self, call: &Call<'_>) -> Launch {
        let agent = &call.spec.agent;
        let given = UserArgs::new(&agent.args);
        let mut launch = Launch { argv: vec![args::program(call)], ..Launch::default() };
        args::add(&mut launch, given, &FORMAT, Some(STREAM));
        if let Some(model) = &agent.model {
            args::add(&mut launch, given, &MODEL, Some(model));
        }
        args::set_env(call, &mut launch, &[("GEMINI_CLI_NO_RELAUNCH", "true")]);
        allow(call, given, &mut launch);
        launch.argv.extend(agent.args.iter().cloned());
        args::hand_over(call, &mut launch, Last::Of("--prompt"), Last::Bare);
        launch
    }

    fn dialect(&self, call: &Call<'_>) -> Box<dyn StreamDecoder> {
        Box::new(Reader::new(call.prompt.len()))
    }

    fn objection(&self, args: &[String]) -> Option<String> {
        UserArgs::new(args).objection("gemini", &FORMAT, STREAM)
    }

    fn model_flags(&self) -> &'static [&'static str] {
        &MODEL
    }
}

/// Its permissions.
///
/// `auto` and `full` are the same here: in any mode but `--yolo` the shell tool is not even offered to the model, so
/// nothing less can run a test. Its own confinement (`--sandbox`) needs a container engine; users who have one give
/// that flag.
fn allow(call: &Call<'_>, given: UserArgs<'_>, launch: &mut Launch) {
    match call.spec.agent.permissions {
        Permissions::Auto | Permissions::Full => {
            if !given.has(&["--yolo", "-y", "--approval-mode", "--allowed-tools"]) {
                launch.argv.push("--yolo".to_owned());
            }
            // Without trust in the folder it does not start at all; with `agent` the user decides about trust.
            args::set_env(call, launch, &[("GEMINI_CLI_TRUST_WORKSPACE", "true")]);
        }
        // In this mode, without a user to ask, no file is changed and the shell is not offered.
        Permissions::ReadOnly => {
            launch.argv.extend(["--approval-mode", "default"].map(str::to_owned));
            args::set_env(call, launch, &[("GEMINI_CLI_TRUST_WORKSPACE", "true")]);
        }
        Permissions::Agent => {}
    }
}

/// The lock (a folder) that a run can leave, according to the environment of the run.
pub fn lock(env: &[(OsString, OsString)]) -> Option<PathBuf> {
    let value = |wanted: &str| {
        let last = env.iter().rev().find(|(name, _)| name == wanted);
        last.map(|(_, value)| value).filter(|value| !value.is_empty())
    };
    let home = value("GEMINI_CLI_HOME").or_else(|| value("HOME"))?;
    Some(Path::new(home).join(".gemini/projects.json.lock"))
}
