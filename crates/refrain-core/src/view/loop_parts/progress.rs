//! Progress and the names of its parts, in one place, so that all surfaces use the same words.

use crate::ids::AttemptId;
use crate::view::{Iteration, Status};

/// The progress: the current iteration, and how many it may have.
pub fn progress(iteration: u32, cap: Option<u32>) -> String {
    match cap {
        Some(cap) => format!("{iteration}/{cap}"),
        None => format!("{iteration}/∞"),
    }
}

impl Status {
    pub fn progress(&self) -> String {
        progress(self.iteration, self.max_iterations)
    }
}

impl Iteration {
    pub fn id(&self) -> AttemptId {
        AttemptId { iteration: self.n, attempt: self.attempt }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_without_a_cap_shows_infinity() {
        assert_eq!([progress(3, Some(20)), progress(3, None)], ["3/20", "3/∞"]);
    }
}
