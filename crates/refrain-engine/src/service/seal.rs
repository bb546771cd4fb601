//! Sealing what was kept, when it is whole: on the supervisor's thread, before the end of a process is reported.

use std::io::{self, ErrorKind, Read};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::event::{AttemptSeals, Seal};
use refrain_core::view::report::{AttemptFile, KeptFile};
use refrain_core::view::seal::Sealing;
use refrain_files::IfThere;
use refrain_proc::output;
use refrain_store::LoopDir;
use refrain_store::project::layout::AttemptDir;

/// Where a file is that was sealed.
pub(crate) fn path(of: &LoopDir, file: &KeptFile) -> Utf8PathBuf {
    let dir = of.attempt(file.of);
    match &file.kept {
        AttemptFile::Prompt => dir.prompt(),
        AttemptFile::Output { streams } => dir.stdout(*streams),
        AttemptFile::Gate(name, run) => dir.gate(name, *run),
    }
}

/// The seal of a kept log, merged or not. One that was never made is empty: a stream that says nothing leaves nothing.
pub(crate) fn of(path: &Utf8Path) -> io::Result<Seal> {
    let mut sealing = Sealing::default();
    let Some(mut kept) = output::read(path).if_there()? else { return Ok(sealing.done()) };
    let mut chunk = vec![0; 256 << 10];
    loop {
        match kept.read(&mut chunk) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(0) => return Ok(sealing.done()),
            read => sealing.add(&chunk[..read?]),
        }
    }
}

/// The seal of a log whose bytes were sealed as they were written. It is read only if not all of them were kept.
pub(crate) fn of_log(path: &Utf8Path, written: &Sealing) -> Option<Seal> {
    let written = written.done();
    match output::read_part(path, 0, 0) {
        Ok((_, kept)) if kept == written.bytes => Some(written),
        Ok(_) | Err(_) => of(path).ok(),
    }
}

/// The seal of a prompt as it was written, whatever its file says now. Of a folder that was removed nothing is kept.
pub(crate) fn of_prompt(path: &Utf8Path, written: Seal) -> Option<Seal> {
    match output::read_part(path, 0, 0) {
        Err(error) if error.kind() == ErrorKind::NotFound => of(path).ok(),
        Ok(_) | Err(_) => Some(written),
    }
}

/// The seals of an attempt that is over: as far as its files can be read.
pub(crate) fn attempt(dir: &AttemptDir, stdout: &Utf8Path) -> AttemptSeals {
    AttemptSeals { prompt: of(&dir.prompt()).ok(), output: of(stdout).ok() }
}

#[cfg(test)]
mod tests {
    use camino::Utf8PathBuf;

    use super::*;

    #[test]
    fn a_log_is_sealed_as_it_was_written_and_read_if_a_part_of_it_was_not_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(dir.path().join("output.log")).unwrap();
        let mut written = Sealing::default();
        assert_eq!(of_log(&path, &written), Some(written.done()), "nothing was printed");
        written.add(b"1 failed");
        refrain_files::write(&path, b"1 passed").unwrap();
        assert_eq!(of_log(&path, &written), Some(written.done()), "the agent rewrote it");
        refrain_files::write(&path, b"1 f").unwrap();
        assert_eq!(of_log(&path, &written), of(&path).ok());
        assert_eq!(of(&path).unwrap().bytes, 3);
    }
}
