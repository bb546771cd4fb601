//! Reads the output that the core quotes: the printable ends of logs.

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::prompt::{GateRun, Quote};
use refrain_core::text::printable;
use refrain_core::{AttemptId, Spec, context};
use refrain_proc::output;
use refrain_store::LoopDir;

use crate::notes::noted;

/// The texts, each with its quote. Blocks.
pub(crate) fn read(spec: &Spec, dir: &LoopDir, quotes: &[Quote]) -> Vec<(Quote, String)> {
    let text = |quote: &Quote| match quote {
        Quote::Notes => noted(spec, dir),
        Quote::Attempt(_)
        | Quote::Gate(_)
        | Quote::Before(_)
        | Quote::Earlier(..)
        | Quote::Protected(_)
        | Quote::Outside(_) => logs(spec, dir, *quote).iter().find_map(|log| {
            let end = end_of(log)?;
            (!end.trim().is_empty()).then_some(end)
        }),
    };
    quotes.iter().filter_map(|quote| Some((*quote, text(quote)?))).collect()
}

/// The logs that may have the text: the first that is not empty counts.
fn logs(spec: &Spec, dir: &LoopDir, quote: Quote) -> Vec<Utf8PathBuf> {
    let of_gate = |run: GateRun| {
        let gate = spec.gates.get(run.gate);
        gate.map(|gate| dir.attempt(run.of).gate(&gate.name, run.run)).into_iter().collect()
    };
    let of_agent = |id: AttemptId| {
        let dir = dir.attempt(id);
        // A stream of events is not readable text; the prompt names its fault anyway.
        let stdout = (!spec.agent.streams()).then(|| dir.stdout(false));
        std::iter::once(dir.stderr()).chain(stdout).collect()
    };
    match quote {
        Quote::Gate(run) | Quote::Before(run) | Quote::Earlier(_, Some(run)) => of_gate(run),
        Quote::Attempt(id) | Quote::Earlier(id, None) => of_agent(id),
        Quote::Protected(id) => vec![dir.attempt(id).touched()],
        Quote::Outside(id) => vec![dir.attempt(id).outside()],
        Quote::Notes => Vec::new(),
    }
}

/// The printable end of a log.
pub(crate) fn end_of(path: &Utf8Path) -> Option<String> {
    let bytes = output::read_end(path, context::EXCERPT as u64).ok()?;
    Some(printable(&String::from_utf8_lossy(&bytes)).into_owned())
}
