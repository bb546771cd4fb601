//! What callers may ask, with its bounds (seed 003). The bounds stand in the schema, so that a model sees them, and are held
//! against what was sent, as nothing makes a client heed a schema: what is out of range is refused by name, and never bent.

use std::fmt::Display;
use std::ops::RangeInclusive;

use refrain_app::plan::MOST_JOBS;
use refrain_app::verbs::tune::LONGEST as LONGEST_TEXT;
use refrain_core::MAX_STEERING;
use refrain_core::spec::Limits;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Refusal;

/// How long any other text may be, in characters.
const LONGEST_WORD: usize = 4_096;
/// How many commands may be named.
const MOST_GATES: usize = 16;
const ITERATIONS: RangeInclusive<u32> = 1..=Limits::MAX_GRANT;
/// The longest iteration that may be asked for, in minutes.
const MOST_MINUTES: u32 = 60;
const MINUTES: RangeInclusive<u32> = 1..=MOST_MINUTES;
const CHECKPOINTS: RangeInclusive<u32> = 0..=Limits::MAX_GRANT;
const JOBS: RangeInclusive<u32> = 1..=MOST_JOBS;
/// The longest wait before an answer, in seconds.
const MOST_WAIT: u32 = 600;
const WAIT: RangeInclusive<u32> = 0..=MOST_WAIT;
/// The most that a caller may have spent, in US dollars.
pub(crate) const MOST_MONEY: f64 = 50.0;

/// What `loop_start` takes.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Start {
    /// What the agent is to do, as it is told in every iteration.
    #[schemars(length(min = 1, max = LONGEST_TEXT))]
    pub(crate) goal: String,
    /// The folder that the agent works in, inside what this server may work in; its first folder where it is left out.
    pub(crate) workspace: Option<String>,
    /// Who works: claude, codex, opencode, gemini, or an agent that the configuration names; acp and generic need command.
    /// What the configuration says where it and command are left out.
    pub(crate) agent: Option<String>,
    /// A command to loop instead, with its arguments; words are split like a shell's, no shell runs it.
    pub(crate) command: Option<String>,
    /// Which model the agent uses; its own choice where it is left out.
    pub(crate) model: Option<String>,
    /// The loop's id, of a-z, 0-9 and hyphens; made up where it is left out.
    pub(crate) name: Option<String>,
    /// Shell commands that have to pass before the work counts as done, each as CMD or NAME=CMD.
    #[schemars(length(max = MOST_GATES))]
    #[serde(default)]
    pub(crate) gates: Vec<String>,
    /// A shell command run after each iteration. The loop is done once it exits 0 and all required gates pass, whatever the agent
    /// says; a claim of the agent that it does not confirm is refused.
    pub(crate) success_command: Option<String>,
    /// Start although the program of a gate or of success_command is not found or not executable, for a program that the agent
    /// is to create.
    #[serde(default)]
    pub(crate) allow_missing_gates: bool,
    /// How many iterations at most; 20 where neither this nor the configuration says.
    #[schemars(range(min = 1, max = Limits::MAX_GRANT))]
    pub(crate) max_iterations: Option<u32>,
    /// How much money it may cost, in US dollars: more than 0, at most 50; 5 where neither this nor the configuration says.
    /// An agent that does not tell what it costs (codex and gemini without a configured price, any command) cannot be held
    /// to it: asked for it is refused then, left out it is said in notes.
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = MOST_MONEY))]
    pub(crate) max_cost_usd: Option<f64>,
    /// How many minutes one iteration may take before its agent is asked to stop; 30 s later it is killed. 30 where neither
    /// this nor the configuration says.
    #[schemars(range(min = 1, max = MOST_MINUTES))]
    pub(crate) max_tick_duration_minutes: Option<u32>,
    /// After how many iterations a critic looks at the progress and advises the agent; 0 is never.
    #[schemars(range(min = 0, max = Limits::MAX_GRANT))]
    pub(crate) checkpoint_interval: Option<u32>,
    /// Whether a person is asked last of all: what all else proved is done once they approve it.
    #[serde(default)]
    pub(crate) require_approval: bool,
}

impl Start {
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        text("goal", &self.goal, LONGEST_TEXT)?;
        words(&[
            ("workspace", &self.workspace),
            ("agent", &self.agent),
            ("command", &self.command),
            ("model", &self.model),
            ("name", &self.name),
            ("success_command", &self.success_command),
        ])?;
        commands("gates", &self.gates)?;
        within("max_iterations", self.max_iterations, &ITERATIONS)?;
        within("max_tick_duration_minutes", self.max_tick_duration_minutes, &MINUTES)?;
        within("checkpoint_interval", self.checkpoint_interval, &CHECKPOINTS)?;
        money(self.max_cost_usd)
    }
}

/// What `plan_run` takes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanRun {
    /// The tag of the tasks in .scud/tasks; the active one, or the only one, where it is left out.
    pub(crate) tag: Option<String>,
    /// A file with the plan in Markdown, or with its tasks, inside the workspace.
    pub(crate) plan: Option<String>,
    /// The folder of the project, inside what this server may work in; its first folder where it is left out.
    pub(crate) workspace: Option<String>,
    /// Who works on the tasks, as for loop_start; claude where nothing says.
    pub(crate) agent: Option<String>,
    /// A command to loop instead, as for loop_start.
    pub(crate) command: Option<String>,
    /// Which model the agents use; their own choice where it is left out.
    pub(crate) model: Option<String>,
    /// The plan's id, of a-z, 0-9 and hyphens; made up where it is left out.
    pub(crate) name: Option<String>,
    /// The shell command that proves a task done that names none of its own.
    pub(crate) verify: Option<String>,
    /// Start although the program of verify or of a gate is not found or not executable, as for loop_start.
    #[serde(default)]
    pub(crate) allow_missing_gates: bool,
    /// How many tasks are worked on at a time; as many as the machine can take where it is left out.
    #[schemars(range(min = 1, max = MOST_JOBS))]
    pub(crate) jobs: Option<u32>,
    /// How many iterations one task may take; 3 where it is left out.
    #[schemars(range(min = 1, max = Limits::MAX_GRANT))]
    pub(crate) max_iterations_per_task: Option<u32>,
    /// How much money all tasks may cost together, in US dollars, as for loop_start.
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = MOST_MONEY))]
    pub(crate) max_cost_usd: Option<f64>,
    /// How many minutes one iteration may take, as for loop_start.
    #[schemars(range(min = 1, max = MOST_MINUTES))]
    pub(crate) max_tick_duration_minutes: Option<u32>,
}

impl PlanRun {
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        words(&[
            ("tag", &self.tag),
            ("plan", &self.plan),
            ("workspace", &self.workspace),
            ("agent", &self.agent),
            ("command", &self.command),
            ("model", &self.model),
            ("name", &self.name),
            ("verify", &self.verify),
        ])?;
        within("jobs", self.jobs, &JOBS)?;
        within("max_iterations_per_task", self.max_iterations_per_task, &ITERATIONS)?;
        within("max_tick_duration_minutes", self.max_tick_duration_minutes, &MINUTES)?;
        money(self.max_cost_usd)
    }
}

/// Which loop, or plan, is meant.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Which {
    /// The loop's, or the plan's, id.
    pub(crate) loop_id: String,
    /// The folder of its project; needed only where several have a loop of that id.
    pub(crate) workspace: Option<String>,
}

/// What `loop_status` takes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WithWait {
    /// The loop's, or the plan's, id.
    pub(crate) loop_id: String,
    /// The folder of its project; needed only where several have a loop of that id.
    pub(crate) workspace: Option<String>,
    /// How many seconds to wait for it to get on (an iteration ends, or it stops) before answering; 0, at once, where it is
    /// left out. Progress is notified meanwhile.
    #[schemars(range(min = 0, max = MOST_WAIT))]
    #[serde(default)]
    pub(crate) wait_seconds: u32,
}

impl WithWait {
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        within("wait_seconds", Some(self.wait_seconds), &WAIT)
    }

    pub(crate) fn which(&self) -> Which {
        Which { loop_id: self.loop_id.clone(), workspace: self.workspace.clone() }
    }
}

/// What `loop_stop` takes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stop {
    /// The loop's, or the plan's, id.
    pub(crate) loop_id: String,
    /// The folder of its project; needed only where several have a loop of that id.
    pub(crate) workspace: Option<String>,
    /// End the agent now, and do not let it finish its iteration.
    #[serde(default)]
    pub(crate) now: bool,
}

/// What `loop_steer` takes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Steer {
    /// The loop's id.
    pub(crate) loop_id: String,
    /// The folder of its project; needed only where several have a loop of that id.
    pub(crate) workspace: Option<String>,
    /// What the agent is told with its next iteration: at most 8192 bytes.
    #[schemars(length(min = 1, max = MAX_STEERING))]
    pub(crate) text: String,
}

/// What `loop_list` takes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    /// The folder of the project; all projects that this server may look at where it is left out.
    pub(crate) workspace: Option<String>,
    /// List those too that are over: the last 50, newest first.
    #[serde(default)]
    pub(crate) include_finished: bool,
}

fn within(name: &str, value: Option<u32>, accepted: &RangeInclusive<u32>) -> Result<(), Refusal> {
    match value {
        Some(value) if !accepted.contains(&value) => {
            let (least, most) = accepted.clone().into_inner();
            Err(refused(name, value, format!("whole numbers from {least} to {most}")))
        }
        _ => Ok(()),
    }
}

fn money(value: Option<f64>) -> Result<(), Refusal> {
    match value {
        // Written so that what is no number is none of them.
        Some(value) if !(value > 0.0 && value <= MOST_MONEY) => {
            Err(refused("max_cost_usd", value, format!("more than 0, and at most {MOST_MONEY}")))
        }
        _ => Ok(()),
    }
}

fn text(name: &str, value: &str, most: usize) -> Result<(), Refusal> {
    let length = value.chars().count();
    let accepted = format!("1 to {most} characters, and no NUL");
    if length > most {
        return Err(refused(name, format!("of {length} characters"), accepted));
    }
    match value.trim().is_empty() || value.contains('\0') {
        true => Err(refused(name, "that is empty or has a NUL", accepted)),
        false => Ok(()),
    }
}

fn words(given: &[(&str, &Option<String>)]) -> Result<(), Refusal> {
    given.iter().try_for_each(|(name, value)| match value {
        Some(value) => text(name, value, LONGEST_WORD),
        None => Ok(()),
    })
}

fn commands(name: &str, given: &[String]) -> Result<(), Refusal> {
    if given.len() > MOST_GATES {
        return Err(refused(name, format!("of {}", given.len()), format!("at most {MOST_GATES}")));
    }
    given.iter().try_for_each(|command| text(name, command, LONGEST_WORD))
}

fn refused(name: &str, value: impl Display, accepted: impl Display) -> Refusal {
    Refusal::new(format!("{name} {value}: accepted are {accepted}"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn start(more: Value) -> Result<(), String> {
        let mut asked = json!({"goal": "Mend it."});
        for (name, value) in more.as_object().unwrap() {
            asked[name] = value.clone();
        }
        let start: Start = serde_json::from_value(asked).map_err(|error| error.to_string())?;
        start.check().map_err(|refusal| refusal.to_string())
    }

    #[rstest]
    #[case(json!({"goal": "x".repeat(10_000)}))]
    #[case(json!({"goal": "ä".repeat(10_000)}))]
    #[case(json!({"max_iterations": 1}))]
    #[case(json!({"max_iterations": 200, "max_cost_usd": 50, "max_tick_duration_minutes": 60}))]
    #[case(json!({"max_cost_usd": 0.001, "max_tick_duration_minutes": 1, "checkpoint_interval": 0}))]
    #[case(json!({"checkpoint_interval": 200, "gates": ["cargo test", "lint=cargo clippy"]}))]
    #[case(json!({"workspace": null, "agent": null}))]
    fn what_is_in_its_bounds_is_taken(#[case] more: Value) {
        assert_eq!(start(more), Ok(()));
    }

    #[rstest]
    #[case(json!({"goal": ""}), "goal")]
    #[case(json!({"goal": " \n"}), "goal")]
    #[case(json!({"goal": "a\u{0}b"}), "goal")]
    #[case(json!({"goal": "x".repeat(10_001)}), "goal of 10001 characters: accepted are 1 to 10000 characters")]
    #[case(json!({"goal": 7}), "integer `7`")]
    #[case(json!({"max_iterations": 0}), "max_iterations 0: accepted are whole numbers from 1 to 200")]
    #[case(json!({"max_iterations": 201}), "max_iterations 201")]
    #[case(json!({"max_iterations": -1}), "`-1`")]
    #[case(json!({"max_iterations": 2.5}), "`2.5`")]
    #[case(json!({"max_iterations": "20"}), "\"20\"")]
    #[case(json!({"max_cost_usd": 0}), "max_cost_usd 0: accepted are more than 0, and at most 50")]
    #[case(json!({"max_cost_usd": -3}), "max_cost_usd -3")]
    #[case(json!({"max_cost_usd": 50.01}), "max_cost_usd 50.01")]
    #[case(json!({"max_tick_duration_minutes": 61}), "max_tick_duration_minutes 61")]
    #[case(json!({"max_tick_duration_minutes": 0}), "max_tick_duration_minutes 0")]
    #[case(json!({"checkpoint_interval": 201}), "checkpoint_interval 201")]
    #[case(json!({"gates": vec!["true"; 17]}), "gates of 17")]
    #[case(json!({"gates": [""]}), "gates")]
    #[case(json!({"success_command": "x".repeat(4_097)}), "success_command of 4097 characters")]
    #[case(json!({"budget": 3}), "unknown field `budget`")]
    fn what_is_not_is_refused_by_name(#[case] more: Value, #[case] says: &str) {
        let refused = start(more).unwrap_err();
        assert!(refused.contains(says), "{refused}");
    }

    #[test]
    fn a_schema_says_the_bounds_that_are_held() {
        let schema = serde_json::to_value(schemars::schema_for!(Start)).unwrap();
        let of = |name: &str, key: &str| schema["properties"][name][key].clone();
        assert_eq!((of("goal", "minLength"), of("goal", "maxLength")), (json!(1), json!(LONGEST_TEXT)));
        for (name, bounds) in [
            ("max_iterations", ITERATIONS),
            ("max_tick_duration_minutes", MINUTES),
            ("checkpoint_interval", CHECKPOINTS),
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
