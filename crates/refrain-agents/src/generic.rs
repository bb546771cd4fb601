//! Any command. Its message is all of its standard output, less an echo of the prompt.

use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::promise::{Finding, Scanner};
use refrain_core::spec::PromptMode;
use refrain_core::{LoopState, Spec};
use refrain_proc::Listener;

/// The longest argument, and the longest variable with its name, that Linux takes, in bytes (`MAX_ARG_STRLEN` less the
/// final NUL; agent-clis.md, trap 1).
pub const LONGEST_ARGUMENT: usize = 131_071;
/// What the prompt grows by over the iterations: the context, an excerpt of a failure, steering. Refused at the start
/// rather than in the middle of the night.
pub const PROMPT_GROWTH: usize = 16 << 10;

/// How to start the command with a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Variables that carry the prompt.
    pub env: Vec<(String, String)>,
    /// The file to be read as standard input; none is closed.
    pub stdin: Option<Utf8PathBuf>,
}

/// The command line for `prompt`, which also stands in `prompt_file`.
#[must_use]
pub fn launch(state: &LoopState, prompt: &str, prompt_file: &Utf8Path) -> Launch {
    let agent = &state.spec.agent;
    // The keeper would look a relative path up from where it was started itself.
    let program = match agent.program.contains('/') {
        true => state.spec.working_dir.join(&agent.program).into_string(),
        false => agent.program.clone(),
    };
    let mut launch = Launch {
        argv: std::iter::once(program).chain(agent.args.iter().cloned()).collect(),
        env: Vec::new(),
        stdin: None,
    };
    match agent.prompt_mode {
        PromptMode::Auto if !fits_argument(prompt) => launch.stdin = Some(prompt_file.to_owned()),
        PromptMode::Auto | PromptMode::Arg => launch.argv.push(prompt.to_owned()),
        PromptMode::Stdin => launch.stdin = Some(prompt_file.to_owned()),
        PromptMode::Env => launch.env.push(("PROMPT".to_owned(), prompt.to_owned())),
        PromptMode::File => launch.argv.push(prompt_file.to_string()),
    }
    launch
}

/// Why an agent's program cannot be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoProgram {
    /// It is not there.
    #[error("the agent program {0:?} cannot be found")]
    Missing(String),
    /// It is not in any folder of `PATH`.
    #[error("the agent program {0:?} cannot be found in PATH")]
    NotInPath(String),
    /// It is something else.
    #[error("the agent program {0:?} is no file")]
    NoFile(String),
    /// It may not be run.
    #[error("the agent program {0:?} is not executable")]
    NotExecutable(String),
}

/// Where the program is: a path as seen from its working folder, or a name found in the `PATH` that the agent will have.
///
/// # Errors
/// [`NoProgram`], so that nothing is begun that could not work.
pub fn locate(spec: &Spec, env: &[(OsString, OsString)]) -> Result<PathBuf, NoProgram> {
    let program = &spec.agent.program;
    let is_executable = |meta: &Metadata| meta.is_file() && meta.permissions().mode() & 0o111 != 0;
    if program.contains('/') {
        let path = spec.working_dir.join(program).into_std_path_buf();
        return match std::fs::metadata(&path) {
            Err(_) => Err(NoProgram::Missing(program.clone())),
            Ok(meta) if !meta.is_file() => Err(NoProgram::NoFile(program.clone())),
            Ok(meta) if !is_executable(&meta) => Err(NoProgram::NotExecutable(program.clone())),
            Ok(_) => Ok(path),
        };
    }
    let path = env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value);
    path.into_iter()
        .flat_map(std::env::split_paths)
        .map(|dir| dir.join(program))
        .find(|path| std::fs::metadata(path).is_ok_and(|meta| is_executable(&meta)))
        .ok_or_else(|| NoProgram::NotInPath(program.clone()))
}

/// What a prompt must be to travel as an argument or in a variable.
pub mod prompt_limit {
    use super::{LONGEST_ARGUMENT, PROMPT_GROWTH};

    /// Why a prompt cannot be an argument.
    #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
    pub enum TooMuch {
        /// It is too long, or would be in a later iteration.
        #[error("the prompt has {0} bytes, at most {most} fit into an argument or a variable", most = LONGEST_ARGUMENT - PROMPT_GROWTH)]
        Long(usize),
        /// It holds what ends an argument.
        #[error("the prompt holds a NUL, which ends an argument")]
        Nul,
    }

    /// Checks a person's prompt, with room for what the iterations add to it.
    ///
    /// # Errors
    /// [`TooMuch`].
    pub fn check(prompt: &str) -> Result<(), TooMuch> {
        if prompt.contains('\0') {
            return Err(TooMuch::Nul);
        }
        if prompt.len() > LONGEST_ARGUMENT - PROMPT_GROWTH {
            return Err(TooMuch::Long(prompt.len()));
        }
        Ok(())
    }
}

/// Whether a prompt can be one argument.
#[must_use]
fn fits_argument(prompt: &str) -> bool {
    prompt.len() <= LONGEST_ARGUMENT && !prompt.contains('\0')
}

/// Reads the command's standard output as it passes.
#[derive(Debug)]
pub struct Reader(Scanner);

impl Reader {
    /// A reader for the attempt that was told `prompt`.
    #[must_use]
    pub fn new(spec: &Spec, prompt: &str) -> Self {
        Self(Scanner::new(spec.promise.as_ref(), prompt))
    }

    /// What the message said.
    #[must_use]
    pub fn conclude(self) -> Finding {
        self.0.finish()
    }
}

impl Listener for Reader {
    fn hear(&mut self, chunk: &[u8]) {
        self.0.push(chunk);
    }
}
