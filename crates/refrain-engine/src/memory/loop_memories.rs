//! The memories of a loop that has ended: its runner reads them from the journal once that says so. This can change
//! nothing about the loop, and errors are only reported.

use std::sync::{Arc, OnceLock};

use refrain_core::LoopState;
use refrain_core::event::{Ask, Asker, Event};
use refrain_core::memory::{Memory, after};
use refrain_store::{JournalError, LoopDir, journal, memory as kept};

use crate::git_steps::failure_branch::logins;
use crate::service::redact::Redactor;
use crate::{Host, chain};

/// Why a loop left no memories, for its runner: known once it has been driven.
#[derive(Clone, Debug, Default)]
pub struct Remembrance(Arc<OnceLock<String>>);

impl Remembrance {
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

/// A finished loop, as later ones may know of it: without secrets in the goal and the messages.
pub(crate) struct Past {
    pub(crate) state: LoopState,
    /// All messages of a person to its agent.
    pub(crate) said: Vec<String>,
    redactor: Redactor,
}

impl Past {
    /// The loop in this folder, as its journal has it.
    pub(crate) fn read(host: &Host, dir: &LoopDir) -> Result<Self, JournalError> {
        let mut state = journal::read(dir)?.state;
        let redactor = Redactor::new(&state.spec, logins(&host.env));
        state.spec.prompt = redactor.clean(&state.spec.prompt);
        for attempt in &mut state.attempts {
            if let Some(summary) = attempt.finished.as_mut().and_then(|finished| finished.summary.as_mut()) {
                *summary = redactor.clean(summary);
            }
        }
        let mut said = Vec::new();
        for record in journal::records(dir)? {
            let Event::Asked { request, ask, by: Asker::Person } = record.event else { continue };
            if let Ask::Steer(text) = ask {
                said.push((request, redactor.clean(&text)));
            } else if let Ask::Withdraw(withdrawn) = ask {
                said.retain(|(request, _)| request.as_ref() != Some(&withdrawn));
            }
        }
        let said = said.into_iter().map(|(_, text)| text).collect();
        Ok(Self { state, said, redactor })
    }

    /// Takes the secrets out of another text of it.
    pub(crate) fn clean(&self, text: &str) -> String {
        self.redactor.clean(text)
    }

    /// The memories from the loop itself.
    pub(crate) fn memories(&self) -> Vec<Memory> {
        let said: Vec<&str> = self.said.iter().map(String::as_str).collect();
        self.without_secrets(after(&self.state, &said))
    }

    /// These without those that still look like a secret.
    pub(crate) fn without_secrets(&self, mut memories: Vec<Memory>) -> Vec<Memory> {
        memories.retain(|it| self.clean(&it.text) == it.text);
        memories
    }
}

/// Keeps the memories of a loop that has ended; those of an earlier end are replaced. Returns what went wrong.
pub(crate) fn remember(host: &Host, dir: &LoopDir) -> Option<String> {
    // What cannot be read is reported when the loop itself is asked for.
    let past = Past::read(host, dir).ok()?;
    past.state.spec.memory.as_ref()?;
    let memories = past.memories();
    if memories.is_empty() {
        return None;
    }
    kept::make(&host.data_home, |file| file.remember(memories)).err().map(|error| chain(&error))
}
