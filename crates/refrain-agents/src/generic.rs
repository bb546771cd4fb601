//! Any command. Its message is all of its standard output, without an echo of the prompt.

use std::ffi::OsString;
use std::path::PathBuf;

use camino::Utf8Path;
use refrain_core::Spec;
use refrain_core::agent::{AgentEvent, Fault, FaultKind};
use refrain_core::event::Exit;
use refrain_core::spec::PromptMode;
pub use refrain_proc::program::in_path;
use refrain_proc::program::is_executable;

use crate::adapter::{Call, Launch, StreamDecoder};
use crate::args::{self, Last};

/// The longest argument, and the longest variable with its name, that Linux accepts, in bytes (`MAX_ARG_STRLEN` less
/// the final NUL; agent-clis.md, trap 1).
const LONGEST_ARGUMENT: usize = 131_071;
/// How much the prompt grows over the iterations: the context, excerpts of failures, steering. Refused at the start
/// rather than in the middle of the night.
const PROMPT_GROWTH: usize = 24 << 10;

/// The command line. `auto` is the last argument, or standard input past the limit of one.
pub fn launch(call: &Call<'_>) -> Launch {
    let agent = &call.spec.agent;
    let mut launch = Launch { argv: vec![args::program(call)], ..Launch::default() };
    launch.argv.extend(agent.args.iter().cloned());
    match agent.prompt_mode {
        PromptMode::Auto if fits_argument(call.prompt) => launch.argv.push(call.prompt.to_owned()),
        PromptMode::Auto | PromptMode::Arg | PromptMode::Stdin | PromptMode::Env | PromptMode::File => {
            args::hand_over(call, &mut launch, Last::Bare, Last::Bare);
        }
    }
    launch
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoProgram {
    #[error("the agent program {0:?} cannot be found")]
    Missing(String),
    /// It is not in any folder of `PATH`.
    #[error("the agent program {0:?} cannot be found in PATH")]
    NotInPath(String),
    #[error("the agent program {0:?} is no file")]
    NoFile(String),
    #[error("the agent program {0:?} is not executable")]
    NotExecutable(String),
}

/// The path of the program: relative to its working folder, or found in the agent's `PATH`.
/// Errors: [`NoProgram`], so that no loop starts that cannot work.
pub fn locate(spec: &Spec, env: &[(OsString, OsString)]) -> Result<PathBuf, NoProgram> {
    find(&spec.agent.program, &spec.working_dir, env)
}

/// The same for a program without a loop.
pub fn find(program: &str, dir: &Utf8Path, env: &[(OsString, OsString)]) -> Result<PathBuf, NoProgram> {
    if program.contains('/') {
        let path = dir.join(program).into_std_path_buf();
        return match std::fs::metadata(&path) {
            Err(_) => Err(NoProgram::Missing(program.to_owned())),
            Ok(meta) if !meta.is_file() => Err(NoProgram::NoFile(program.to_owned())),
            Ok(meta) if !is_executable(&meta) => Err(NoProgram::NotExecutable(program.to_owned())),
            Ok(_) => Ok(path),
        };
    }
    in_path(program, env).ok_or_else(|| NoProgram::NotInPath(program.to_owned()))
}

/// Limits for a prompt that is passed as an argument or in a variable.
pub mod prompt_limit {
    use super::{LONGEST_ARGUMENT, PROMPT_GROWTH};

    #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
    pub enum PromptTooLong {
        #[error("the prompt has {0} bytes, at most {most} fit into an argument or a variable", most = LONGEST_ARGUMENT - PROMPT_GROWTH)]
        Long(usize),
        #[error("the prompt holds a NUL, which ends an argument")]
        Nul,
    }

    /// Checks a user's prompt, with room for the additions of the iterations.
    pub fn check(prompt: &str) -> Result<(), PromptTooLong> {
        if prompt.contains('\0') {
            return Err(PromptTooLong::Nul);
        }
        if prompt.len() > LONGEST_ARGUMENT - PROMPT_GROWTH {
            return Err(PromptTooLong::Long(prompt.len()));
        }
        Ok(())
    }
}

fn fits_argument(prompt: &str) -> bool {
    prompt.len() <= LONGEST_ARGUMENT && !prompt.contains('\0')
}

/// Reads a command whose output is one JSON document (`--output-format json`): the message is the first of its
/// `result`, `response`, `text` or `message` (the names that known agents use).
#[derive(Debug, Default)]
pub(crate) struct Document {
    text: Vec<u8>,
}

/// The longest document, in bytes.
const LONGEST_DOCUMENT: usize = 16 << 20;

impl StreamDecoder for Document {
    fn is_live(&self) -> bool {
        false
    }

    fn line(&mut self, line: &[u8], _say: &mut dyn FnMut(AgentEvent)) {
        if self.text.len() + line.len() <= LONGEST_DOCUMENT {
            self.text.extend_from_slice(line);
            self.text.push(b'\n');
        }
    }

    fn conclude(&mut self, exit: Exit, _stderr: &str, say: &mut dyn FnMut(AgentEvent)) {
        let document = serde_json::from_slice::<serde_json::Value>(&self.text).unwrap_or_default();
        let message =
            ["result", "response", "text", "message"].iter().find_map(|key| document[*key].as_str());
        if document.is_null() {
            let message = "its standard output is no JSON document".to_owned();
            say(AgentEvent::Fault(Fault { kind: FaultKind::Other, message, until: None }));
        } else {
            say(AgentEvent::Final { ok: exit == Exit::Code(0), message: message.map(str::to_owned) });
        }
    }
}
