//! Reads the output that the core quotes: the printable ends of logs.

use camino::Utf8Path;
use refrain_core::Spec;
use refrain_core::prompt::{Quote, Source, context};
use refrain_core::text::printable;
use refrain_proc::output;
use refrain_store::LoopDir;

use crate::service::notes::noted;

/// The texts, each with its quote. Blocks.
pub(crate) fn read(spec: &Spec, dir: &LoopDir, quotes: &[(Quote, Vec<Source>)]) -> Vec<(Quote, String)> {
    let first = |sources: &[Source]| {
        let mut texts = sources.iter().filter_map(|source| text(spec, dir, source));
        texts.find(|text| !text.trim().is_empty())
    };
    quotes.iter().filter_map(|(quote, sources)| Some((*quote, first(sources)?))).collect()
}

fn text(spec: &Spec, dir: &LoopDir, source: &Source) -> Option<String> {
    let log = match source {
        Source::Stderr(id) => dir.attempt(*id).stderr(),
        Source::Stdout(id) => dir.attempt(*id).stdout(false),
        Source::Gate(name, run) => dir.attempt(run.of).gate(name, run.run),
        Source::Touched(id) => dir.attempt(*id).touched(),
        Source::Outside(id) => dir.attempt(*id).outside(),
        Source::Notes => return noted(spec, dir),
    };
    end_of(&log, context::EXCERPT)
}

/// The printable end of a log, at most `most` bytes.
pub(crate) fn end_of(path: &Utf8Path, most: usize) -> Option<String> {
    let bytes = output::read_end(path, most as u64).ok()?;
    Some(printable(&String::from_utf8_lossy(&bytes)).into_owned())
}
