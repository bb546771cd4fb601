//! Why something was not done, in one clear line that names the value and what is accepted.

use std::fmt;

use refrain_core::text::printable;
use refrain_engine::{EngineError, chain};

/// A refusal: nothing was begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal(String);

impl Refusal {
    pub(crate) fn new(text: impl AsRef<str>) -> Self {
        // What is named in it was said by somebody else.
        Self(printable(text.as_ref()).split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<EngineError> for Refusal {
    fn from(error: EngineError) -> Self {
        let meant = match &error {
            EngineError::NoLoop { nearest: Some(nearest), .. } => format!("; did you mean {nearest}?"),
            EngineError::NoLoop { nearest: None, .. } => "; loop_list shows what there is".to_owned(),
            _ => String::new(),
        };
        Self::new(format!("{}{meant}", chain(&error)))
    }
}
