use super::child::Child;

#[derive(Clone, Debug, PartialEq)]
pub struct RunningCritique {
    pub iteration: u32,
    pub child: Child,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Feedback {
    /// The iteration after which the last one was started.
    pub(in crate::r#loop) asked: u32,
    /// The critic's message, until an iteration that got it is charged.
    pub said: Option<String>,
    pub error: Option<String>,
}
