//! The gate of an account, as one runner sees it: whether its next attempt has to wait for what another loop met, and
//! whether it is the one that tries first when a limit is said to be over.

use std::ffi::OsString;
use std::time::Duration;

use camino::Utf8Path;
use jiff::Timestamp;
use refrain_agents::environment;
use refrain_core::event::Wait;
use refrain_core::r#loop::{Outcome, Phase};
use refrain_core::{LoopState, Spec};
use refrain_store::{AccountGate, Probe};

/// How long the others wait while one tries.
const WHILE_ONE_TRIES: Duration = Duration::from_secs(15);

/// A runner's view of the gate.
#[derive(Debug)]
pub(crate) struct Gate {
    account: AccountGate,
    probe: Option<Probe>,
}

impl Gate {
    /// The gate of the account that the loop's agents use; a command without an account has none.
    pub(crate) fn new(spec: &Spec, env: &[(OsString, OsString)], state_home: &Utf8Path) -> Option<Self> {
        let account = environment::account(spec, env)?;
        Some(Self { account: AccountGate::new(state_home, &account), probe: None })
    }

    /// What there is to wait for before an attempt that is about to start. One of all loops may start when the time has
    /// come; that one keeps the right until it knows.
    pub(crate) fn wait(&mut self, state: &LoopState, now: Timestamp) -> Option<Wait> {
        let starts = matches!(state.phase, Phase::Begun { .. }) && state.ended.is_none();
        let closed = if starts && self.probe.is_none() { self.account.closed()? } else { return None };
        if closed.until > now {
            return Some(closed);
        }
        // A lock that cannot be had at all holds nobody up.
        match self.account.try_probe() {
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

    /// An attempt is over: what it met holds for all loops of the account, and that it met nothing does too. Only advice,
    /// so what cannot be written is left.
    pub(crate) fn learn(&mut self, state: &LoopState) {
        match (state.attempts.last().map(|last| last.outcome), state.provider_wait()) {
            (Some(Outcome::Limit), Some(wait)) => {
                let _ = self.account.close(wait);
            }
            (Some(Outcome::Claimed | Outcome::Ended), _) if self.account.closed().is_some() => {
                let _ = self.account.open();
            }
            (_, _) => {}
        }
        self.probe = None;
    }
}
