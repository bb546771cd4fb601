//! The gate of an account, as one runner sees it: whether its next attempt has to wait for what another loop met, and
//! whether it is the one that tries first when a limit is said to be over.

use std::ffi::OsString;
use std::time::Duration;

use camino::Utf8Path;
use jiff::Timestamp;
use refrain_agents::environment;
use refrain_core::event::Wait;
use refrain_core::r#loop::Outcome;
use refrain_core::{LoopState, Spec};
use refrain_store::{AccountGate, Probe};

/// How long the others wait while one tries: it knows when its provider answers, which takes seconds.
const WHILE_ONE_TRIES: Duration = Duration::from_secs(30);

/// A runner's view of the gate of its account.
#[derive(Debug)]
pub(crate) struct Account {
    gate: AccountGate,
    /// Held from the start of the attempt that tries first until its provider has answered, or failed it.
    probe: Option<Probe>,
    /// What the gate said when the last attempt was started.
    seen: Option<Wait>,
}

impl Account {
    /// The gate of the account that the loop's agents use; a command without an account has none.
    pub(crate) fn new(spec: &Spec, env: &[(OsString, OsString)], state_home: &Utf8Path) -> Option<Self> {
        let account = environment::account(spec, env)?;
        Some(Self { gate: AccountGate::new(state_home, &account), probe: None, seen: None })
    }

    /// What there is to wait for before the attempt that would start now. One of all loops may start when the time has
    /// come.
    pub(crate) fn wait(&mut self, now: Timestamp) -> Option<Wait> {
        self.seen = self.gate.closed();
        let closed = self.seen?;
        if closed.until > now {
            return Some(closed);
        }
        // A lock that cannot be had at all holds nobody up.
        match self.gate.try_probe() {
            Ok(None) => {
                Some(Wait { until: now.saturating_add(WHILE_ONE_TRIES).unwrap_or(closed.until), ..closed })
            }
            Ok(probe) => {
                self.probe = probe;
                None
            }
            Err(_) => None,
        }
    }

    /// The provider answered the attempt in flight: the limit is over for all, unless somebody met a new one since.
    pub(crate) fn answered(&mut self) {
        if self.seen.is_some() && self.gate.closed() == self.seen {
            // Only advice, so what cannot be removed is left.
            let _ = self.gate.open();
        }
        (self.probe, self.seen) = (None, None);
    }

    /// An attempt is over: a limit that it met holds for all loops of the account.
    pub(crate) fn learn(&mut self, state: &LoopState) {
        let is_limited = state.attempts.last().is_some_and(|last| last.outcome == Outcome::Limit);
        if let Some(wait) = state.provider_wait().filter(|_| is_limited) {
            let _ = self.gate.close(wait);
        }
        (self.probe, self.seen) = (None, None);
    }
}
