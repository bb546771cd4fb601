use super::iteration::Iteration;
use crate::r#loop::Outcome;

#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Pip {
    Running,
    Passed,
    Failed,
    /// All required gates passed, and an advisory one failed.
    Advisory,
    /// It ended, and no required gate ran.
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
            Some(_) if gates.iter().any(|gate| gate.hard) => {
                if gates.iter().all(|gate| gate.passed) {
                    Self::Passed
                } else {
                    Self::Advisory
                }
            }
            Some(Outcome::Claimed | Outcome::Ended) => Self::Ended,
            Some(_) => Self::Broken,
        }
    }

    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
