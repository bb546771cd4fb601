//! Protected places that no mount can hold: what is missing, and without namespaces what is there.

#[cfg(target_os = "linux")]
mod original;
#[cfg(target_os = "linux")]
pub(crate) mod originals;
#[cfg(target_os = "linux")]
pub(crate) mod placeholders;
#[cfg(target_os = "linux")]
pub(crate) mod records;

/// What became of protected places, a line for each.
#[derive(Debug, Default)]
pub struct Restored {
    pub lines: Vec<String>,
    /// What could not be restored: whatever is there, an agent may have put there.
    pub failed: Vec<String>,
}

#[cfg(target_os = "linux")]
impl Restored {
    fn add(&mut self, result: Result<String, String>) {
        match result {
            Ok(line) => self.lines.push(line),
            Err(line) => self.failed.push(line),
        }
    }

    /// Prints what was restored, and refuses what was not.
    pub(crate) fn report(self) -> Result<(), crate::Refusal> {
        use crate::refusal::{At, Step};
        self.lines.iter().for_each(|line| crate::messages::complain(line));
        match self.failed.is_empty() {
            true => Ok(()),
            false => Err(std::io::Error::other(self.failed.join("; "))).at(Step::Restore),
        }
    }
}
