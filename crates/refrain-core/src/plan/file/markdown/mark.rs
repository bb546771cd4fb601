//! The mark at the end of a title for a status that a box cannot express.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::plan::{Note, TaskStatus};
use crate::text::{clip, printable, squeeze};

/// The longest reason in a title, in bytes.
const LONGEST: usize = 300;

/// The status of a task, from its title.
#[derive(Debug)]
pub(super) struct Mark {
    /// Its place in the title, with the space before it.
    pub(super) range: Range<usize>,
    pub(super) status: TaskStatus,
    pub(super) note: Option<Note>,
}

static MARK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words = TaskStatus::ALL.map(TaskStatus::word).join("|");
    Regex::new(&format!(r"\s\(({words})(?: after (\d+) attempts?)?(?:: (.*))?\)$")).ok()
});

impl Mark {
    /// The mark of a title that ends without space.
    pub(super) fn of(title: &str) -> Option<Self> {
        let found = MARK.as_ref()?.captures(title)?;
        let status = TaskStatus::named(found.get(1)?.as_str())?;
        let attempts = found.get(2).and_then(|number| number.as_str().parse().ok());
        let reason = found.get(3).map(|reason| reason.as_str().to_owned());
        let note = (attempts.is_some() || reason.is_some())
            .then(|| Note { reason: reason.unwrap_or_default(), attempts: attempts.unwrap_or_default() });
        Some(Self { range: found.get(0)?.range(), status, note })
    }

    /// The mark of a status, with the space before it.
    pub(super) fn text(status: TaskStatus, note: Option<&Note>) -> String {
        let Some(Note { reason, attempts }) = note else { return format!(" ({status})") };
        let reason = squeeze(&printable(reason));
        let after = match attempts {
            0 => String::new(),
            1 => " after 1 attempt".to_owned(),
            more => format!(" after {more} attempts"),
        };
        let why = if reason.is_empty() { String::new() } else { format!(": {}", clip(&reason, LONGEST)) };
        format!(" ({status}{after}{why})")
    }
}
