//! What a loop leaves behind when it has ended: read from its journal once that says so, by whoever drove it. It can change
//! nothing about the loop, and what goes wrong is only told.

use std::sync::{Arc, OnceLock};

use refrain_core::event::{Ask, Event};
use refrain_core::{LoopState, memory};
use refrain_store::{LoopDir, journal, memory as kept};

use crate::keeping::logins;
use crate::redact::Redactor;
use crate::{Host, chain};

/// Why a loop left nothing behind, for whoever drove it: known once it has been driven.
#[derive(Clone, Debug, Default)]
pub struct Remembrance(Arc<OnceLock<String>>);

impl Remembrance {
    /// Why nothing was remembered, where something was to be.
    #[must_use]
    pub fn trouble(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }

    pub(crate) fn set(&self, trouble: Option<String>) {
        if let Some(trouble) = trouble {
            // The first one says it.
            let _ = self.0.set(trouble);
        }
    }
}

/// Remembers what there is to remember of a loop that has ended; what it left before, when it ended for the first time, is
/// replaced. Answers with what went wrong.
pub(crate) fn remember(host: &Host, dir: &LoopDir) -> Option<String> {
    // What cannot be read is told by whoever asks for the loop.
    let state = journal::read(dir).ok()?.state;
    state.spec.memory.as_ref()?;
    let records = journal::records(dir).ok()?;
    let mut said = Vec::new();
    for record in records {
        if let Event::Asked { ask: Ask::Steer(text), .. } = record.event {
            said.push(text);
        }
    }
    let memories = clean(state, host, &said);
    if memories.is_empty() {
        return None;
    }
    kept::make(&host.data_home, |file| file.remember(memories)).err().map(|error| chain(&error))
}

/// What the core says of it, without secrets: each text is cleaned before anything is made of it, and what looks like one all
/// the same is left out.
fn clean(mut state: LoopState, host: &Host, said: &[String]) -> Vec<memory::Memory> {
    let redactor = Redactor::new(&state.spec, logins(&host.env));
    state.spec.prompt = redactor.clean(&state.spec.prompt);
    for attempt in &mut state.attempts {
        if let Some(summary) = attempt.finished.as_mut().and_then(|finished| finished.summary.as_mut()) {
            *summary = redactor.clean(summary);
        }
    }
    let said: Vec<String> = said.iter().map(|text| redactor.clean(text)).collect();
    let said: Vec<&str> = said.iter().map(String::as_str).collect();
    let mut memories = memory::after(&state, &said);
    memories.retain(|it| redactor.clean(&it.text) == it.text);
    memories
}
