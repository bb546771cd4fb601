//! Command lines: the user's own arguments, the program, how a prompt is passed, which variables are set. An argument
//! that the user gave is not added again.

use refrain_core::spec::PromptMode;

use crate::adapter::{Call, Launch};

/// The user's own arguments that may be flags: those before `--`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UserArgs<'a>(&'a [String]);

impl<'a> UserArgs<'a> {
    pub(crate) fn new(args: &'a [String]) -> Self {
        let end = args.iter().position(|arg| arg == "--").unwrap_or(args.len());
        Self(&args[..end])
    }

    /// Whether one of these flags is given: `--flag`, `--flag=value`, `-f`, `-fvalue`. A value that looks like a flag
    /// counts as one: a missing default is better than a repeated flag, which some programs refuse.
    pub(crate) fn has(self, flags: &[&str]) -> bool {
        self.0.iter().any(|arg| flags.iter().any(|flag| attached(arg, flag).is_some()))
    }

    /// All values of a flag: `--flag value`, `--flag=value`, `-f value`, `-fvalue`, `-f=value`.
    pub(crate) fn values(self, flags: &[&str]) -> impl Iterator<Item = &'a str> {
        self.0.iter().enumerate().flat_map(move |(index, arg)| {
            let next = self.0.get(index + 1).map(String::as_str);
            flags.iter().filter_map(move |flag| match attached(arg, flag)? {
                "" => next,
                value => Some(value.strip_prefix('=').unwrap_or(value)),
            })
        })
    }

    /// Why a program cannot work with these: a flag changes the output to another format than the required stream.
    pub(crate) fn objection(self, program: &str, format: &[&str], stream: &str) -> Option<String> {
        let flag = format.first()?;
        let other = self.values(format).find(|value| *value != stream)?;
        Some(format!("{flag} {other}: of {program} its stream is read; accepted: {flag} {stream}"))
    }

    /// All but these: flags alone, and flags with their values up to the next flag.
    pub(crate) fn without(self, bare: &[&str], valued: &[&str]) -> Vec<String> {
        let is = |arg: &String, flags: &[&str]| flags.iter().any(|flag| attached(arg, flag).is_some());
        let mut is_value = false;
        let kept = self.0.iter().filter(|arg| {
            is_value &= !arg.starts_with('-');
            let struck = is_value || is(arg, bare) || is(arg, valued);
            is_value |= is(arg, valued);
            !struck
        });
        kept.cloned().collect()
    }

    /// The position of the first argument that is neither a flag nor the value of one of `valued`.
    pub(crate) fn first_word(self, valued: &[&str]) -> Option<usize> {
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

/// These without some flags and the value of each.
pub(crate) fn without_values(args: &[String], flags: &[&str]) -> Vec<String> {
    let end = UserArgs::new(args).0.len();
    let mut is_value = false;
    let kept = args.iter().enumerate().filter(|(at, arg)| {
        if std::mem::take(&mut is_value) {
            return false;
        }
        let rest = flags.iter().filter(|_| *at < end).find_map(|flag| attached(arg, flag));
        is_value = rest == Some("");
        rest.is_none()
    });
    kept.map(|(_, arg)| arg.clone()).collect()
}

/// The part of an argument after a flag: nothing, `=value`, or for a short flag the value itself.
fn attached<'a>(arg: &'a str, flag: &str) -> Option<&'a str> {
    let rest = arg.strip_prefix(flag)?;
    let is_short = !flag.starts_with("--");
    (rest.is_empty() || is_short || rest.starts_with('=')).then_some(rest)
}

/// The program to start. The keeper would resolve a relative path against its own folder.
pub(crate) fn program(call: &Call<'_>) -> String {
    let program = &call.spec.agent.program;
    match program.contains('/') {
        true => call.spec.working_dir.join(program).into_string(),
        false => program.clone(),
    }
}

/// Whether the prompt is read from standard input: the way of every agent that Refrain knows, as an argument is short
/// and must not begin with a dash (agent-clis.md, trap 1).
pub(crate) fn is_prompt_on_stdin(call: &Call<'_>) -> bool {
    match call.spec.agent.prompt_mode {
        PromptMode::Auto | PromptMode::Stdin => true,
        PromptMode::Arg | PromptMode::Env | PromptMode::File => false,
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Last {
    /// After `--`: an earlier list option would consume it, and it may begin with a dash.
    Word,
    /// Without a prefix: it may be the value of the user's own last flag.
    Bare,
    /// Attached to this flag: it may begin with a dash.
    Of(&'static str),
}

/// Passes the prompt on standard input, unless the user wants it otherwise: then it, or the path of its file, is an
/// argument of this form.
pub(crate) fn hand_over(call: &Call<'_>, launch: &mut Launch, prompt: Last, file: Last) {
    match call.spec.agent.prompt_mode {
        PromptMode::Auto | PromptMode::Stdin => launch.stdin = Some(call.prompt.to_owned()),
        PromptMode::Arg => push_last(call, launch, prompt, call.prompt),
        PromptMode::Env => launch.env.push(("PROMPT".to_owned(), call.prompt.to_owned())),
        PromptMode::File => push_last(call, launch, file, call.prompt_file.as_str()),
    }
}

pub(crate) fn push_last(call: &Call<'_>, launch: &mut Launch, place: Last, text: &str) {
    match place {
        Last::Word => {
            if !call.spec.agent.args.iter().any(|arg| arg == "--") {
                launch.argv.push("--".to_owned());
            }
            launch.argv.push(text.to_owned());
        }
        Last::Bare => launch.argv.push(text.to_owned()),
        Last::Of(flag) => launch.argv.push(format!("{flag}={text}")),
    }
}

/// Adds the first of these synonymous flags, unless one is given.
pub(crate) fn add(launch: &mut Launch, given: UserArgs<'_>, flags: &[&str], value: Option<&str>) {
    if !given.has(flags) {
        launch.argv.extend(flags.first().into_iter().chain(value.iter()).map(|&arg| arg.to_owned()));
    }
}

/// Sets variables that the user did not set, neither for this loop nor in its agents' environment.
pub(crate) fn set_env(call: &Call<'_>, launch: &mut Launch, env: &[(&str, &str)]) {
    let is_theirs = |wanted: &str| {
        call.spec.agent.env.contains_key(wanted) || call.env.iter().any(|(name, _)| name == wanted)
    };
    let ours = env.iter().filter(|(name, _)| !is_theirs(name));
    launch.env.extend(ours.map(|&(name, value)| (name.to_owned(), value.to_owned())));
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::whole(&["--model", "x"], &["x"])]
    #[case::with_a_value(&["--model=x"], &["x"])]
    #[case::short(&["-m", "x"], &["x"])]
    #[case::short_with_a_value(&["-mx"], &["x"])]
    #[case::short_with_an_equals_sign(&["-m=x"], &["x"])]
    #[case::twice(&["-m", "x", "--model=y"], &["x", "y"])]
    #[case::another_that_begins_the_same(&["--model-file", "x"], &[])]
    #[case::a_word(&["model"], &[])]
    #[case::past_the_flags(&["--", "--model"], &[])]
    #[case::none(&[], &[])]
    fn arguments_of_the_user_are_found(#[case] args: &[&str], #[case] values: &[&str]) {
        let args: Vec<String> = args.iter().map(ToString::to_string).collect();
        let given = UserArgs::new(&args);
        assert_eq!(given.has(&["--model", "-m"]), !values.is_empty());
        assert_eq!(given.values(&["--model", "-m"]).collect::<Vec<_>>(), values);
    }

    #[rstest]
    #[case(&["--model", "x", "run"], &["run"])]
    #[case(&["run", "-m=x", "--model=y", "-q"], &["run", "-q"])]
    #[case(&["run", "--model"], &["run"])]
    #[case(&["-mx", "--", "-m", "x"], &["--", "-m", "x"])]
    #[case(&["--model-file", "x"], &["--model-file", "x"])]
    fn a_flag_goes_with_its_value(#[case] args: &[&str], #[case] kept: &[&str]) {
        let args: Vec<String> = args.iter().map(ToString::to_string).collect();
        assert_eq!(without_values(&args, &["--model", "-m"]), kept);
    }
}
