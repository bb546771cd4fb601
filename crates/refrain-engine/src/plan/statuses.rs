//! What stands in the task file, kept in step with the journal. It is written as things happen, and read again when
//! somebody else wrote it.

use std::collections::HashMap;
use std::sync::Arc;

use camino::Utf8PathBuf;
use refrain_core::plan::file::Change;
        let written = self.file()?.set(changes)?;
        // What a person wrote in between is theirs, and still to be read.
        for change in changes.iter().filter(|change| !written.left.contains(&change.task)) {
            self.written.insert(change.task.clone(), (change.status, change.note.clone()));
        }
        // What somebody else wrote in between is still to be read.
        if self.stamp == Some(written.found) {
            self.stamp = Some(written.stamp);
        }
        Ok(())
    }
}
