//! Searching what an attempt printed, however much that is: it is read part by part, and no more of it is held than
//! that.

use std::ops::ControlFlow;

use refrain_agents::output_parser::Stream;
use refrain_core::agent::AgentEvent;
use refrain_core::text::printable;
use refrain_core::{AttemptId, LoopId};
use refrain_store::journal;

use crate::driver::recovery;
use crate::service::logs::part;
use crate::service::redact::Redactor;
use crate::{EngineError, Service};

/// How much is read at once, in bytes; more if a line is longer than that.
const STEP: u64 = 256 << 10;
/// The longest line that is looked at whole, in bytes.
const LONGEST_LINE: u64 = 16 << 20;
/// How much is searched at a time, in bytes: the caller asks again to continue.
const MOST: u64 = 128 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchResult {
    /// The byte from which to continue.
    pub next: u64,
    /// How many bytes there are now.
    pub total: u64,
}

impl Service {
    /// Reports what an attempt's agent said from byte `from` on that may have `wanted` in it, in any case, and at which
    /// byte; until it is cancelled, or so much was searched that the caller should decide whether to continue. None if
    /// nothing was printed.
    pub fn search(
        &self,
        id: &LoopId,
        attempt: AttemptId,
        (wanted, from): (&str, u64),
        say: &mut dyn FnMut(u64, AgentEvent) -> ControlFlow<()>,
    ) -> Result<Option<SearchResult>, EngineError> {
        let dir = self.locate(id)?.dir;
        let spec = journal::read(&dir)?.state.spec;
        let (of, redactor) = (dir.attempt(attempt), Redactor::new(&spec, []));
        let streams = spec.agent.streams();
        let log = of.stdout(streams);
        let dialect = if streams { recovery::dialect(&spec, &of.prompt()) } else { None };
        let mut reader =
            Reader { wanted: SearchTerm::new(wanted), redactor, stream: dialect.map(Stream::new) };
        let (mut next, mut step) = (from, STEP);
        loop {
            let Some((_, bytes, total)) = part(&log, Some(next), step) else { return Ok(None) };
            let is_cut = bytes.len() as u64 == step && !bytes.ends_with(b"\n");
            if is_cut && step < LONGEST_LINE {
                step *= 2;
                continue;
            }
            step = STEP;
            if bytes.is_empty() || next.saturating_sub(from) >= MOST {
                return Ok(Some(SearchResult { next, total }));
            }
            if let ControlFlow::Break(read) = reader.look(&bytes, next, say) {
                return Ok(Some(SearchResult { next: next + read, total }));
            }
            next += bytes.len() as u64;
        }
    }
}

struct Reader {
    wanted: SearchTerm,
    redactor: Redactor,
    /// None of what is no stream of events.
    stream: Option<Stream>,
}

impl Reader {
    /// Looks through a part that begins at byte `at`; a break holds how many bytes of it were searched.
    fn look(
        &mut self,
        bytes: &[u8],
        at: u64,
        say: &mut dyn FnMut(u64, AgentEvent) -> ControlFlow<()>,
    ) -> ControlFlow<u64> {
        if !self.wanted.may_be_in(bytes) {
            return ControlFlow::Continue(());
        }
        let clean = |text: &str| self.redactor.clean(&printable(text));
        // A line of a key looks like nothing by itself.
        let whole =
            if self.stream.is_none() { clean(&String::from_utf8_lossy(bytes)) } else { String::new() };
        let mut read = 0;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let begin = at + read;
            read += line.len() as u64;
            let mut found = Vec::new();
            match &mut self.stream {
                Some(stream) => stream.push(line, &mut |event| found.push(event.cleaned(&clean))),
                None if self.wanted.is_in(&String::from_utf8_lossy(line)) => {
                    let shown = clean(&String::from_utf8_lossy(line));
                    found.extend(whole.contains(&shown).then_some(AgentEvent::Notice(shown)));
                }
                None => {}
            }
            for event in found {
                if say(begin, event).is_break() {
                    return ControlFlow::Break(read);
                }
            }
        }
        ControlFlow::Continue(())
    }
}

struct SearchTerm {
    text: String,
    /// Its words, where a stream of events has them as they are; none if it may write them in another way.
    words: Vec<String>,
}

impl SearchTerm {
    fn new(text: &str) -> Self {
        let text = text.to_lowercase();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c.is_ascii_whitespace() || "_-.".contains(c);
        let words = text.split_whitespace().filter(|_| text.chars().all(is_plain)).map(str::to_owned);
        Self { words: words.collect(), text }
    }

    /// Whether a part can have it at all: most have not, and need not be understood.
    fn may_be_in(&self, bytes: &[u8]) -> bool {
        let text = || String::from_utf8_lossy(bytes).to_ascii_lowercase();
        self.words.is_empty() || {
            let text = text();
            self.words.iter().all(|word| text.contains(word.as_str()))
        }
    }

    fn is_in(&self, text: &str) -> bool {
        text.to_lowercase().contains(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("Cargo Test", "{\"name\":\"Bash\",\"command\":\"cargo test\"}", true)]
    #[case("bash cargo", "{\"name\":\"Bash\",\"command\":\"cargo test\"}", true)]
    #[case("needle", "{\"text\":\"hay\"}", false)]
    #[case("é", "{\"text\":\"\\u00e9\"}", true)]
    #[case("say \"hi\"", "{\"text\":\"say \\\"hi\\\"\"}", true)]
    fn a_part_is_passed_over_only_where_it_cannot_have_it(
        #[case] wanted: &str,
        #[case] part: &str,
        #[case] may: bool,
    ) {
        assert_eq!(SearchTerm::new(wanted).may_be_in(part.as_bytes()), may);
    }
}
