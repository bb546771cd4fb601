//! Requests of other programs (seed 003): fewer options than the command line has, each with a bound, and their own
//! defaults. The bounds are in the schema, so that a model sees them, and are checked again here, because a client may
//! ignore a schema: a value out of range is refused by name, and never changed.

pub mod parameters;
mod resolve;
mod slack;

use std::slice;

use refrain_core::LoopId;
use refrain_core::spec::Limits;
use refrain_core::values::MOST_JOBS;
use refrain_engine::Service;
use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::effects::TypedOptions;
use crate::error::Message;
use crate::plan::run_detached;
use crate::plan::tune::LONGEST as LONGEST_TEXT;
use crate::resolve::{StartLoop, Workspace};
use crate::verbs::start::{PreparedLoop, start_detached};
use crate::{Action, Context, Note, RequestError};

/// How long any other text may be, in characters.
const LONGEST_WORD: usize = 4_096;
const MOST_GATES: usize = 16;
/// The longest iteration that may be asked for, in minutes.
const MOST_MINUTES: u32 = 60;
/// The most that a caller may have spent, in US dollars.
pub const MOST_MONEY: f64 = 50.0;

/// What `loop_start` takes.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// The task, as it is in the prompt of every iteration.
    #[schemars(length(min = 1, max = LONGEST_TEXT))]
    pub goal: String,
    /// The folder that the agent works in, inside what this server may work in [default: its first folder].
    pub workspace: Option<String>,
    /// Who works: claude, codex, opencode, gemini, or an agent that the configuration names; acp and generic need command.
    /// What the configuration says where it and command are left out.
    pub agent: Option<String>,
    /// A command to loop instead, with its arguments; words are split like a shell's, no shell runs it.
    pub command: Option<String>,
    /// Which model the agent uses [default: its own choice].
    pub model: Option<String>,
    /// The loop's id, of a-z, 0-9 and hyphens [default: made up].
    pub name: Option<String>,
    /// Shell commands that have to pass before the work counts as done, each as CMD or NAME=CMD.
    #[schemars(length(max = MOST_GATES))]
    #[serde(default)]
    pub gates: Vec<String>,
    /// Start without gates: neither configured ones nor those that the project offers, which a known agent's loop takes if no
    /// gate is named and you trust their commands.
    #[serde(default)]
    pub no_gates: bool,
    /// A shell command run after each iteration. The loop is done once it exits 0 and all required gates pass, whatever the agent
    /// says; a claim of the agent that it does not confirm is refused.
    pub success_command: Option<String>,
    /// Start although the program of a gate or of success_command is not found or not executable, for a program that the agent
    /// is to create.
    #[serde(default)]
    pub allow_missing_gates: bool,
    /// How many iterations at most; 20 where neither this nor the configuration says.
    #[schemars(range(min = 1, max = Limits::MAX_GRANT))]
    pub max_iterations: Option<u32>,
    /// How much money it may cost, in US dollars: more than 0, at most 50; 5 where neither this nor the configuration says.
    /// An agent that does not tell what it costs (codex and gemini without a configured price, any command) cannot be held
    /// to it: asked for it is refused then, left out it is said in notes.
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = MOST_MONEY))]
    pub max_cost_usd: Option<f64>,
    /// How many minutes one iteration may take before its agent is asked to stop; 30 s later it is killed. 30 where neither
    /// this nor the configuration says.
    #[schemars(range(min = 1, max = MOST_MINUTES))]
    pub max_tick_duration_minutes: Option<u32>,
    /// After how many iterations a critic looks at the progress and advises the agent; 0 is never.
    #[schemars(range(min = 0, max = Limits::MAX_GRANT))]
    pub checkpoint_interval: Option<u32>,
    /// Whether a person is asked last of all: what all else proved is done once they approve it.
    #[serde(default)]
    pub require_approval: bool,
    /// Run the agent and its gates in a sandbox, also where the configuration asks for none. It is refused where the machine
    /// has none.
    #[serde(default)]
    pub sandbox: bool,
    /// The Slack channel, by its id, that shows the loop: one of those that the configuration of refrain serve names.
    pub channel_id: Option<String>,
    /// The thread in that channel, by the time stamp of its first message [default: none].
    pub conversation_id: Option<String>,
    /// The message in that channel that asked for the loop, by its time stamp: it gets the reactions.
    pub trigger_message_ts: Option<String>,
    /// Where the agent works: worktree (its own, on a new branch), branch (a new branch in the folder) or folder (the
    /// default: the folder as it is). With worktree and branch its work is committed.
    pub place: Option<String>,
}

/// What `plan_run` takes.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanRun {
    /// The tag of the tasks in .scud/tasks [default: the active one, or the only one].
    pub tag: Option<String>,
    /// A file with the plan in Markdown, or with its tasks, inside the workspace.
    pub plan: Option<String>,
    /// The folder of the project, inside what this server may work in [default: its first folder].
    pub workspace: Option<String>,
    /// Who works on the tasks, as for loop_start; claude where nothing says.
    pub agent: Option<String>,
    /// A command to loop instead, as for loop_start.
    pub command: Option<String>,
    /// Which model the agents use [default: their own choice].
    pub model: Option<String>,
    /// The plan's id, of a-z, 0-9 and hyphens [default: made up].
    pub name: Option<String>,
    /// The shell command that proves a task done that names none of its own.
    pub verify: Option<String>,
    /// Start although the program of verify or of a gate is not found or not executable, as for loop_start.
    #[serde(default)]
    pub allow_missing_gates: bool,
    /// How many tasks are worked on at a time [default: as many as the machine can take].
    #[schemars(range(min = 1, max = MOST_JOBS))]
    pub jobs: Option<u32>,
    /// How many iterations one task may take [default: 3].
    #[schemars(range(min = 1, max = Limits::MAX_GRANT))]
    pub max_iterations_per_task: Option<u32>,
    /// How much money all tasks may cost together, in US dollars, as for loop_start.
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = MOST_MONEY))]
    pub max_cost_usd: Option<f64>,
    /// How many minutes one iteration may take, as for loop_start.
    #[schemars(range(min = 1, max = MOST_MINUTES))]
    pub max_tick_duration_minutes: Option<u32>,
}

/// What the options that an error names are called in these requests.
const PARAMETERS: [(&str, &str); 23] = [
    ("agent", "agent"),
    ("allow-missing-gates", "allow_missing_gates"),
    ("command", "command"),
    ("create-branch", "place"),
    ("critique-every", "checkpoint_interval"),
    ("gate", "gates"),
    ("jobs", "jobs"),
    ("max-cost", "max_cost_usd"),
    ("max-iterations", "max_iterations"),
    ("max-iterations-per-task", "max_iterations_per_task"),
    ("model", "model"),
    ("name", "name"),
    ("no-gates", "no_gates"),
    ("plan", "plan"),
    ("prompt", "goal"),
    ("require-approval", "require_approval"),
    ("success-command", "success_command"),
    ("tag", "tag"),
    ("timeout", "max_tick_duration_minutes"),
    ("timeout-grace", "max_tick_duration_minutes"),
    ("verify", "verify"),
    ("working-dir", "workspace"),
    ("worktree", "place"),
];

/// What an option is called in these requests, if they have it.
pub fn parameter(option: &str) -> Option<&'static str> {
    PARAMETERS.iter().find(|(known, _)| *known == option).map(|(_, name)| *name)
}

/// Starts a loop in a process of its own. It works in the folder of the context, which the surface has chosen by `workspace`.
pub fn start(context: &Context, asked: &Start, note: Note<'_>) -> Result<(Service, LoopId), RequestError> {
    context.check(Action::Detach)?;
    let (workspace, request) = asked.request(context, note)?;
    let talk = asked.slack_talk(&workspace.settings.config.slack)?;
    let (context, _, prepared) = prepared(context, workspace, &request)?;
    start_detached(&context, prepared, talk.as_ref(), note)
}

/// Works on the tasks of a plan in a process of its own, in the folder of the context as above.
pub fn run_plan(
    context: &Context,
    asked: &PlanRun,
    note: Note<'_>,
) -> Result<(Service, LoopId), RequestError> {
    context.check(Action::Detach)?;
    let request = asked.request(context, note)?;
    let context = with_options(context, "plan run", &resolve::work_options(&request.work));
    run_detached(&context, request, note)
}

/// The command line that a start comes to, as a person would type it; the goal is read from standard input.
/// Errors: What a start would refuse before it begins.
pub fn preview(context: &Context, asked: &Start) -> Result<Vec<String>, RequestError> {
    let (workspace, request) = asked.request(context, &mut |_| ())?;
    let (context, options, _) = prepared(context, workspace, &request)?;
    let options = options.into_iter().map(|(name, value)| match value {
        Some(value) => format!("--{name}={value}"),
        None => format!("--{name}"),
    });
    let words = ["refrain", "-C", context.dir.as_str(), "start"].map(str::to_owned).into_iter();
    Ok(words.chain(options).chain(["-".to_owned()]).collect())
}

/// A loop that can be started, with the options that it was asked for and their context.
fn prepared(
    context: &Context,
    workspace: Workspace,
    request: &StartLoop,
) -> Result<(Context, Vec<resolve::GivenOption>, PreparedLoop), RequestError> {
    let options = resolve::options(&request.options);
    let context = with_options(context, "start", &options);
    context.typed.check()?;
    let prepared = PreparedLoop::new(&context, workspace, request)?;
    Ok((context, options, prepared))
}

/// The surroundings of a request that has these options.
fn with_options(context: &Context, verb: &str, options: &[resolve::GivenOption]) -> Context {
    let typed = TypedOptions::named(verb, options.iter().map(|(name, value)| (*name, value.as_deref())));
    Context { typed, ..context.clone() }
}

/// Refuses a value that the schema of the request does not accept, and a text that is too long or cannot be shown.
fn check<T: Serialize + JsonSchema>(asked: &T) -> Result<(), RequestError> {
    let Ok(Value::Object(asked)) = serde_json::to_value(asked) else {
        return Err(RequestError::usage("the request is no JSON object"));
    };
    parameters::check(&asked, &schema_for!(T).to_value()).map_err(|(name, why)| refused(&name, why))?;
    for (name, value) in &asked {
        let most = if name == "goal" { LONGEST_TEXT } else { LONGEST_WORD };
        let texts = value.as_array().map_or(slice::from_ref(value), Vec::as_slice);
        for text in texts.iter().filter_map(Value::as_str) {
            let length = text.chars().count();
            let why = match text.trim().is_empty() || text.contains('\0') {
                _ if length > most => format!("of {length} characters"),
                true => "is empty or has a NUL".to_owned(),
                false => continue,
            };
            return Err(refused(name, format!(" {why}: accepted: 1 to {most} characters, and no NUL")));
        }
    }
    Ok(())
}

fn refused(name: &str, why: String) -> RequestError {
    let option = PARAMETERS.iter().find(|(_, parameter)| *parameter == name);
    let named = option.map_or_else(|| Message::from(name.to_owned()), |(option, _)| Message::option(option));
    RequestError::usage(named.then(why))
}

#[cfg(test)]
mod tests {
    use clap::Args;
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::options::begin::BeginArgs;
    use crate::plan::{HowArgs, SourceArgs, SpecArgs};

    fn start(more: Value) -> Result<(), String> {
        let mut asked = json!({"goal": "Mend it."});
        for (name, value) in more.as_object().unwrap() {
            asked[name] = value.clone();
        }
        let start: Start = serde_json::from_value(asked).map_err(|error| error.to_string())?;
        check(&start).map_err(|refusal| refusal.line_with(parameter))
    }

    #[rstest]
    #[case(json!({"goal": "x".repeat(10_000)}))]
    #[case(json!({"goal": "ä".repeat(10_000)}))]
    #[case(json!({"max_iterations": 1}))]
    #[case(json!({"max_iterations": 200, "max_cost_usd": 50, "max_tick_duration_minutes": 60}))]
    #[case(json!({"max_cost_usd": 0.001, "max_tick_duration_minutes": 1, "checkpoint_interval": 0}))]
    #[case(json!({"checkpoint_interval": 200, "gates": ["cargo test", "lint=cargo clippy"]}))]
    #[case(json!({"workspace": null, "agent": null}))]
    fn values_within_the_bounds_are_accepted(#[case] more: Value) {
        assert_eq!(start(more), Ok(()));
    }

    #[rstest]
    #[case(json!({"goal": ""}), "goal")]
    #[case(json!({"goal": " \n"}), "goal")]
    #[case(json!({"goal": "a\u{0}b"}), "goal")]
    #[case(json!({"goal": "x".repeat(10_001)}), "goal of 10001 characters: accepted: 1 to 10000 characters")]
    #[case(json!({"goal": 7}), "integer `7`")]
    #[case(json!({"max_iterations": 0}), "max_iterations 0: accepted: whole numbers from 1 to 200")]
    #[case(json!({"max_iterations": 201}), "max_iterations 201")]
    #[case(json!({"max_iterations": -1}), "`-1`")]
    #[case(json!({"max_iterations": 2.5}), "`2.5`")]
    #[case(json!({"max_iterations": "20"}), "\"20\"")]
    #[case(json!({"max_cost_usd": 0}), "max_cost_usd 0: accepted: more than 0, and at most 50")]
    #[case(json!({"max_cost_usd": -3}), "max_cost_usd -3")]
    #[case(json!({"max_cost_usd": 50.01}), "max_cost_usd 50.01")]
    #[case(json!({"max_tick_duration_minutes": 61}), "max_tick_duration_minutes 61")]
    #[case(json!({"max_tick_duration_minutes": 0}), "max_tick_duration_minutes 0")]
    #[case(json!({"checkpoint_interval": 201}), "checkpoint_interval 201")]
    #[case(json!({"gates": vec!["true"; 17]}), "gates of 17")]
    #[case(json!({"gates": [""]}), "gates")]
    #[case(json!({"success_command": "x".repeat(4_097)}), "success_command of 4097 characters")]
    #[case(json!({"budget": 3}), "unknown field `budget`")]
    fn a_value_out_of_bounds_is_refused_by_name(#[case] more: Value, #[case] says: &str) {
        let refused = start(more).unwrap_err();
        assert!(refused.contains(says), "{refused}");
    }

    #[test]
    fn a_parameter_has_an_option_and_a_request() {
        let command = clap::Command::new("refrain");
        let command = HowArgs::augment_args(SourceArgs::augment_args(BeginArgs::augment_args(command)));
        let command = SpecArgs::augment_args(command);
        let schemas = [schemars::schema_for!(Start), schemars::schema_for!(PlanRun)].map(Value::from);
        for (option, parameter) in PARAMETERS {
            assert!(command.get_arguments().any(|arg| arg.get_long() == Some(option)), "{option}");
            assert!(schemas.iter().any(|it| it["properties"].get(parameter).is_some()), "{parameter}");
        }
    }

    #[test]
    fn a_schema_says_the_bounds_that_are_held() {
        let schema = serde_json::to_value(schemars::schema_for!(Start)).unwrap();
        let of = |name: &str, key: &str| schema["properties"][name][key].clone();
        assert_eq!((of("goal", "minLength"), of("goal", "maxLength")), (json!(1), json!(LONGEST_TEXT)));
        for (name, bounds) in [
            ("max_iterations", 1..=Limits::MAX_GRANT),
            ("max_tick_duration_minutes", 1..=MOST_MINUTES),
            ("checkpoint_interval", 0..=Limits::MAX_GRANT),
        ] {
            let held = (json!(bounds.start()), json!(bounds.end()));
            assert_eq!((of(name, "minimum"), of(name, "maximum")), held, "{name}");
        }
        let money = (of("max_cost_usd", "exclusiveMinimum"), of("max_cost_usd", "maximum"));
        assert_eq!(money, (json!(0), json!(MOST_MONEY)));
        assert_eq!(schema["additionalProperties"], json!(false));
        assert_eq!(schema["required"], json!(["goal"]));
    }
}
