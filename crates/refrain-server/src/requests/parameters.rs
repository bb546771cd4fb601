//! The requests that callers may send about existing loops, each named by its id (seed 003).

use refrain_core::MAX_STEERING;
use schemars::JsonSchema;
use serde::Deserialize;

/// The longest wait before an answer, in seconds.
const MOST_WAIT: u32 = 600;

/// Which loop, or plan, is meant.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LoopParams {
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
    pub(crate) fn which(&self) -> LoopParams {
        LoopParams { loop_id: self.loop_id.clone(), workspace: self.workspace.clone() }
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

/// The parameters of `loop_steer` and `loop_answer`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Steer {
    /// The loop's id.
    pub(crate) loop_id: String,
    /// The folder of its project; needed only where several have a loop of that id.
    pub(crate) workspace: Option<String>,
    /// The text for the prompt of the next iteration: at most 8192 bytes.
    #[schemars(length(min = 1, max = MAX_STEERING))]
    pub(crate) text: String,
}

/// What `loop_list` takes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    /// The folder of the project [default: all projects that this server may look at].
    pub(crate) workspace: Option<String>,
    /// List those too that are over: the last 50, newest first.
    #[serde(default)]
    pub(crate) include_finished: bool,
}

/// What `loop_diff` takes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolDiff {
    /// The loop's, or the plan's, id.
    pub(crate) loop_id: String,
    /// The folder of its project; needed only if several have a loop of that id.
    pub(crate) workspace: Option<String>,
    /// Only what this iteration changed [default: all changes so far].
    #[schemars(range(min = 1))]
    pub(crate) iteration: Option<u32>,
    /// Only the files and how many lines of each; `diff` is empty then.
    #[serde(default)]
    pub(crate) stat: bool,
}

/// What `loop_merge` takes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolMerge {
    /// The loop's, or the plan's, id.
    pub(crate) loop_id: String,
    /// The folder of its project; needed only if several have a loop of that id.
    pub(crate) workspace: Option<String>,
    /// Make one commit of all its work.
    #[serde(default)]
    pub(crate) squash: bool,
}
