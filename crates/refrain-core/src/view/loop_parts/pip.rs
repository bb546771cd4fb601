use super::iteration::Iteration;
use crate::r#loop::Outcome;

#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Pip {
    Running,
    Passed,
    Failed,
    Advisory,
    /// It ended, and no gate ran.
    Ended,
    /// The agent failed, was stopped or was lost.
    Broken,
}

impl Pip {
    pub fn of(iteration: &Iteration) -> Self {
        let gates = &iteration.gates;
        match iteration.outcome {
            None => Self::Running,
            Some(_) if gates.iter().any(|gate| gate.hard && !gate.passed) => Self::Failed,
            Some(_) if gates.iter().any(|gate| !gate.passed) => Self::Advisory,
            Some(_) if !gates.is_empty() => Self::Passed,
            Some(Outcome::Claimed | Outcome::Ended) => Self::Ended,
            Some(_) => Self::Broken,
        }
    }

    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
