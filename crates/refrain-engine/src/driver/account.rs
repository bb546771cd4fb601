//! The gate of an account, as one runner sees it: whether its next attempt has to wait for what another loop met, and
//! whether it is the one that tries first when a limit is said to be over.

use std::ffi::OsString;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8Path;
use jiff::Timestamp;
use refrain_agents::environment;
use refrain_core::event::Wait;
use refrain_core::r#loop::Outcome;
use refrain_core::{LoopState, Spec};
use refrain_store::{AccountGate, Probe};

use crate::now;

/// How long the others wait at a time while one tries. They continue as soon as that one has its first event.
const WHILE_ONE_TRIES: Duration = Duration::from_secs(30);
const LOOK_SOON: Duration = Duration::from_secs(1);
/// How often any other wait is looked at again.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// The gates of accounts that machines share, for one drive of a loop.
pub trait SharedAccounts: Debug + Send + Sync {
    /// The gate of the account with this name, which holds nothing secret.
    fn gate(&self, name: &str) -> Box<dyn SharedGate>;
}

/// The gate of an account that machines share. Only where it says so is an answer waited for; blocking is allowed there.
pub trait SharedGate: Debug + Send + Sync {
    /// What the account waits for, as far as is known now; the outer none if that is unknown. Then the gate of this machine
    /// counts.
    fn closed(&self) -> Option<Option<Wait>>;
    /// Waits for the first answer; not for long.
    fn ready(&self);
    fn close(&self, wait: Wait);
    fn open(&self);
    /// Waits for whether this loop may try first; yes if there is no answer.
    fn may_try(&self) -> bool;
}

#[derive(Debug)]
pub(crate) struct Account {
    gate: AccountGate,
    shared: Option<Box<dyn SharedGate>>,
    /// Held from the start of the attempt that tries first until its provider has answered, or failed it.
    probe: Option<Probe>,
    /// What the gate said when the last attempt was started.
    seen: Option<Wait>,
    is_tried: bool,
}

impl Account {
    /// The gate of the account that the loop's agents use; a command without an account has none.
    pub(crate) fn new(
        spec: &Spec,
        env: &[(OsString, OsString)],
        state_home: &Utf8Path,
        others: Option<&Arc<dyn SharedAccounts>>,
    ) -> Option<Self> {
        let account = environment::account(spec, env)?;
        // Whose login a home holds, no other machine knows.
        let key = others.and_then(|_| environment::key(spec, env));
        let shared =
            others.zip(key).map(|(others, key)| others.gate(AccountGate::new(state_home, &key).name()));
        let gate = AccountGate::new(state_home, &account);
        Some(Self { gate, shared, probe: None, seen: None, is_tried: false })
    }

    fn closed(&self) -> Option<Wait> {
        let shared = self.shared.as_ref().and_then(|shared| shared.closed());
        shared.unwrap_or_else(|| self.gate.closed(now()))
    }

    /// That it closed is only advice: what cannot be written is left.
    fn close(&self, wait: Wait, since: Timestamp) {
        let _ = self.gate.close(wait, since);
        if let Some(shared) = &self.shared {
            shared.close(wait);
        }
    }

    /// The wait before the attempt that would start now. One of all loops may start when the time has come.
    pub(crate) fn wait(&mut self, now: Timestamp) -> Option<Wait> {
        self.is_tried = false;
        if let Some(shared) = &self.shared {
            shared.ready();
        }
        self.seen = self.closed();
        let closed = self.seen?;
        if closed.until > now {
            return Some(closed);
        }
        // A lock that cannot be taken at all delays no loop.
        match self.gate.try_probe() {
            Ok(probe) if probe.is_none() || self.shared.as_ref().is_some_and(|shared| !shared.may_try()) => {
                self.is_tried = true;
                Some(Wait { until: now.saturating_add(WHILE_ONE_TRIES).unwrap_or(closed.until), ..closed })
            }
            Ok(probe) => {
                self.probe = probe;
                None
            }
            Err(_) => None,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.closed().is_none()
    }

    /// How often a wait is looked at again.
    pub(crate) fn look_again(&self) -> Duration {
        if self.is_tried { LOOK_SOON } else { LOOK_AGAIN }
    }

    /// The provider answered the attempt in flight: the wait is over for all loops, unless another loop met a new fault
    /// since.
    pub(crate) fn answered(&mut self) {
        if self.seen.is_some() && self.closed() == self.seen {
            // Only advice, so what cannot be removed is left.
            let _ = self.gate.open();
            if let Some(shared) = &self.shared {
                shared.open();
            }
        }
        (self.probe, self.seen) = (None, None);
    }

    /// An attempt is over: a limit or an outage that it met holds for all loops of the account, and so does it that the
    /// provider works.
    pub(crate) fn learn(&mut self, state: &LoopState) {
        match state.attempts.last() {
            Some(last) if last.met_its_provider() => {
                if let Some(wait) = state.provider_wait() {
                    self.close(wait, state.updated_at);
                }
            }
            // A command's answer is known only at its end.
            Some(last) if matches!(last.outcome, Outcome::Claimed | Outcome::Ended) => self.answered(),
            Some(_) | None => {}
        }
        (self.probe, self.seen) = (None, None);
    }
}
