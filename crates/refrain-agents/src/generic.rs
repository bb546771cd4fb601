//! Any command. Its message is all of its standard output, less an echo of the prompt.

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
    let mut launch = Launch {
        argv: std::iter::once(&agent.program).chain(&agent.args).cloned().collect(),
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

/// Whether a prompt can be one argument.
#[must_use]
pub fn fits_argument(prompt: &str) -> bool {
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
