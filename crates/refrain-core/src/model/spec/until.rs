use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When a loop ends by itself (`--loop`, `--exact N`, `--infinite`; seed 002). [`super::Limits`] has the number of iterations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    /// Until it claims to be done, and that is proven.
    #[default]
    Complete,
    /// When as many iterations are done as were asked for: no claim ends it before that, and it needs none then.
    Count,
    /// Until it is stopped or reaches a limit: a claim says that there is nothing to do now, and a wait follows it.
    Forever,
}
