//! A finding of a check: one line with the place, the problem, and what to do.

use std::fmt;

/// Whether a finding stops a change from landing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    Warning,
    Error,
}

#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) weight: Weight,
    pub(crate) place: String,
    pub(crate) wrong: String,
    pub(crate) remedy: String,
}

impl Finding {
    /// Something that must not land.
    pub(crate) fn error(
        place: impl Into<String>,
        wrong: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { weight: Weight::Error, place: place.into(), wrong: wrong.into(), remedy: remedy.into() }
    }

    pub(crate) fn warning(
        place: impl Into<String>,
        wrong: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { weight: Weight::Warning, ..Self::error(place, wrong, remedy) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let weight = match self.weight {
            Weight::Warning => "warning",
            Weight::Error => "error",
        };
        write!(f, "{weight}: {}: {}; {}", self.place, self.wrong, self.remedy)
    }
}
