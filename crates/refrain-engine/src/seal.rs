//! Sealing what was kept, when it is whole: on the supervisor's thread, before the end of a process is told. The file was
//! just written, so it is read from memory.

use std::io::{self, ErrorKind, Read};

use camino::Utf8Path;
use refrain_core::event::{Seal, Sealed};
use refrain_core::seal::Sealing;
use refrain_proc::output;
use refrain_store::layout::AttemptDir;

/// The seal of a kept log, merged or not. One that was never made is empty: a stream that says nothing leaves nothing.
pub(crate) fn of(path: &Utf8Path) -> io::Result<Seal> {
    let mut sealing = Sealing::default();
    let mut kept = match output::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(sealing.done()),
        kept => kept?,
    };
    let mut chunk = vec![0; 256 << 10];
    loop {
        match kept.read(&mut chunk) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(0) => return Ok(sealing.done()),
            read => sealing.add(&chunk[..read?]),
        }
    }
}

/// The seals of an attempt that is over: as far as its files can be read.
pub(crate) fn attempt(dir: &AttemptDir, stdout: &Utf8Path) -> Sealed {
    Sealed { prompt: of(&dir.prompt()).ok(), output: of(stdout).ok() }
}
