//! Command lines: what the person already gave, what program is meant, and how a prompt travels.

use refrain_core::spec::PromptMode;

use crate::adapter::{Call, Launch};

/// The person's own arguments, as far as flags can be among them: what follows `--` is none.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a>(&'a [String]);

impl<'a> Given<'a> {
    /// Of these arguments.
    #[must_use]
    pub fn new(args: &'a [String]) -> Self {
        let end = args.iter().position(|arg| arg == "--").unwrap_or(args.len());
        Self(&args[..end])
    }

    /// Whether one of these flags is given: `--flag`, `--flag=value`, `-f`, `-fvalue`. A value that looks like a flag is
    /// taken for one: better a default too few than a flag twice, which some programs refuse.
    #[must_use]
    pub fn has(self, flags: &[&str]) -> bool {
        self.0.iter().any(|arg| flags.iter().any(|flag| attached(arg, flag).is_some()))
    }

    /// All values of a flag: `--flag value`, `--flag=value`, `-f value`, `-fvalue`, `-f=value`.
    pub fn values(self, flags: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
        self.0.iter().enumerate().flat_map(move |(index, arg)| {
            let next = self.0.get(index + 1).map(String::as_str);
            flags.iter().filter_map(move |flag| match attached(arg, flag)? {
                "" => next,
                value => Some(value.strip_prefix('=').unwrap_or(value)),
            })
        })
    }

    /// Where the first argument stands that is neither a flag nor the value of one of `valued`.
    #[must_use]
    pub fn first_word(self, valued: &[&str]) -> Option<usize> {
        let mut is_value = false;
        self.0.iter().position(|arg| {
            if std::mem::take(&mut is_value) {
                return false;
            }
            is_value = valued.contains(&arg.as_str());
            !arg.starts_with('-')
        })
    }
}

/// What is attached to a flag in one argument: nothing, `=value`, or for a short flag the value itself.
fn attached<'a>(arg: &'a str, flag: &str) -> Option<&'a str> {
    let rest = arg.strip_prefix(flag)?;
    let is_short = !flag.starts_with("--");
    (rest.is_empty() || is_short || rest.starts_with('=')).then_some(rest)
}

/// The program to be started. The keeper would look a relative path up from where it was started itself.
#[must_use]
pub fn program(call: &Call<'_>) -> String {
    let program = &call.spec.agent.program;
    match program.contains('/') {
        true => call.spec.working_dir.join(program).into_string(),
        false => program.clone(),
    }
}

/// Whether the prompt is read from standard input: the way of every agent that Refrain knows, as an argument is short and
/// must not begin with a dash (agent-clis.md, trap 1).
#[must_use]
pub fn is_prompt_on_stdin(call: &Call<'_>) -> bool {
    match call.spec.agent.prompt_mode {
        PromptMode::Auto | PromptMode::Stdin => true,
        PromptMode::Arg | PromptMode::Env | PromptMode::File => false,
    }
}

/// Gives the prompt to a program that reads it from standard input, unless the person wants it otherwise. As an argument
/// it follows `--`: lists before it would swallow it, and it may begin with a dash.
pub fn hand_over_prompt(call: &Call<'_>, launch: &mut Launch) {
    match call.spec.agent.prompt_mode {
        PromptMode::Auto | PromptMode::Stdin => launch.stdin = Some(call.prompt_file.to_owned()),
        PromptMode::Arg => push_word(call, launch, call.prompt),
        PromptMode::Env => launch.env.push(("PROMPT".to_owned(), call.prompt.to_owned())),
        PromptMode::File => push_word(call, launch, call.prompt_file.as_str()),
    }
}

/// Adds an argument that is no flag, whatever it looks like.
pub fn push_word(call: &Call<'_>, launch: &mut Launch, word: &str) {
    if !call.spec.agent.args.iter().any(|arg| arg == "--") {
        launch.argv.push("--".to_owned());
    }
    launch.argv.push(word.to_owned());
}

/// Adds the first of these flags, which are the same, unless one is given.
pub fn add(launch: &mut Launch, given: Given<'_>, flags: &[&str], value: Option<&str>) {
    if !given.has(flags) {
        launch.argv.extend(flags.first().into_iter().chain(value.iter()).map(|&arg| arg.to_owned()));
    }
}

/// Sets variables that the person did not set.
pub fn set_env(call: &Call<'_>, launch: &mut Launch, env: &[(&str, &str)]) {
    let theirs = &call.spec.agent.env;
    let ours = env.iter().filter(|(name, _)| !theirs.contains_key(*name));
    launch.env.extend(ours.map(|&(name, value)| (name.to_owned(), value.to_owned())));
}
