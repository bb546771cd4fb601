//! What a person's own arguments already say, and the command line that is built around them. Whatever a person gave
//! stands there once: nothing that we would add is added beside it.

use refrain_core::spec::{AgentSpec, PromptMode};

use crate::adapter::{Call, Launch};

/// The person's own arguments, to be asked what they hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flags<'a>(pub(crate) &'a [String]);

impl Flags<'_> {
    /// Whether one of these flags is given: `--flag`, `--flag=value`, `-f`, `-fvalue`. What follows a `--` is no flag. The
    /// value of another flag that looks like one counts too: then too little is added, never a flag twice.
    pub(crate) fn give(self, names: &[&str]) -> bool {
        let is = |argument: &str, name: &&str| match argument.strip_prefix(name) {
            Some("") => true,
            Some(rest) => rest.starts_with('=') || !name.starts_with("--"),
            None => false,
        };
        self.0
            .iter()
            .take_while(|argument| *argument != "--")
            .any(|argument| names.iter().any(|name| is(argument, name)))
    }
}

/// The program to start. The keeper would look a relative path up from where it was started itself.
pub(crate) fn program(call: &Call<'_>) -> String {
    let program = &call.spec.agent.program;
    match program.contains('/') {
        true => call.spec.working_dir.join(program).into_string(),
        false => program.clone(),
    }
}

/// Where the prompt goes with a program that reads standard input; `as_argument` says how it is written as the last
/// argument, where a person insists on that.
pub(crate) fn hand_over(
    launch: &mut Launch,
    call: &Call<'_>,
    as_argument: impl FnOnce(&mut Vec<String>, &str),
) {
    match call.spec.agent.prompt_mode {
        PromptMode::Auto | PromptMode::Stdin => launch.stdin = Some(call.prompt_file.to_owned()),
        PromptMode::Arg => as_argument(&mut launch.argv, call.prompt),
        PromptMode::Env => launch.env.push(("PROMPT".to_owned(), call.prompt.to_owned())),
        PromptMode::File => launch.argv.push(call.prompt_file.to_string()),
    }
}

/// A variable for the agent, unless the person set it for this loop.
pub(crate) fn set(launch: &mut Launch, agent: &AgentSpec, name: &str, value: &str) {
    if !agent.env.contains_key(name) {
        launch.env.push((name.to_owned(), value.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::whole(&["--model", "x"], true)]
    #[case::with_a_value(&["--model=x"], true)]
    #[case::short(&["-m", "x"], true)]
    #[case::short_with_a_value(&["-mx"], true)]
    #[case::short_with_an_equals_sign(&["-m=x"], true)]
    #[case::another_that_begins_the_same(&["--model-file", "x"], false)]
    #[case::a_word(&["model"], false)]
    #[case::past_the_flags(&["--", "--model"], false)]
    #[case::none(&[], false)]
    fn what_a_person_gave_is_seen(#[case] args: &[&str], #[case] is_given: bool) {
        let args: Vec<String> = args.iter().map(ToString::to_string).collect();
        assert_eq!(Flags(&args).give(&["--model", "-m"]), is_given);
    }
}
