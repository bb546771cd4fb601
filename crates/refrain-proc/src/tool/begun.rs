//! A tool that is started before its input is known, so that its start overlaps with preparing the input.

use std::process::{Child, Stdio};

use super::{Tool, ToolError, ToolOutput, swept};

/// A tool that waits for its input. Dropping it closes the input, and waits for its end.
#[derive(Debug)]
pub struct WaitingTool<'a> {
    tool: Tool<'a>,
    child: Option<Child>,
}

impl<'a> Tool<'a> {
    /// Starts it before its input is known. If we are killed, it reads nothing.
    pub fn begin(self) -> Result<WaitingTool<'a>, ToolError> {
        // A tool under a keeper is only started once its input is known.
        let child = match self.sweeper {
            Some(_) => None,
            None => Some(self.start(Stdio::piped())?),
        };
        Ok(WaitingTool { tool: self, child })
    }
}

impl WaitingTool<'_> {
    /// Writes its input and runs it to its end, with any exit code. Its time limit starts now.
    pub fn run(mut self, input: &[u8]) -> Result<ToolOutput, ToolError> {
        self.end(input)
    }

    /// The same, and returns its output.
    /// Errors: [`ToolError`], also if its exit code is not 0.
    pub fn output(mut self, input: &[u8]) -> Result<Vec<u8>, ToolError> {
        let done = self.end(input)?;
        self.tool.printed(done)
    }

    fn end(&mut self, input: &[u8]) -> Result<ToolOutput, ToolError> {
        match (self.child.take(), self.tool.sweeper) {
            (Some(child), _) => self.tool.finish(child, input),
            (None, Some(sweeper)) => swept::run(&self.tool, sweeper, input),
            (None, None) => Err(self.tool.io(std::io::ErrorKind::BrokenPipe)),
        }
    }
}

impl Drop for WaitingTool<'_> {
    fn drop(&mut self) {
        // Not killed: git removes its locks.
        if self.child.is_some() {
            let _ = self.end(&[]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn it_reads_what_is_known_only_later() {
        let begun = Tool::new("cat", Path::new("/")).begin().unwrap();
        assert_eq!(begun.output(b"late\n").unwrap(), b"late\n");
        let begun = Tool::new("sh", Path::new("/")).args(["-c", "cat; exit 3"]).begin().unwrap();
        assert_eq!(begun.run(b"").unwrap().status.code(), Some(3));
    }

    #[test]
    fn one_that_is_not_needed_reads_nothing_and_puts_its_things_away() {
        let dir = tempfile::tempdir().unwrap();
        let script = "touch lock; cat > read; rm lock";
        drop(Tool::new("sh", dir.path()).args(["-c", script]).begin().unwrap());
        assert_eq!(std::fs::read(dir.path().join("read")).unwrap(), b"");
        assert!(!dir.path().join("lock").exists());
    }
}
