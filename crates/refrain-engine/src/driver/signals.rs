//! What signals, or the host of a loop, ask of the process that drives it, and what that means for the loop.

use std::io;

use refrain_core::event::Urgency;
use refrain_proc::{detach, tool};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::EngineError;

/// When the loops that listen to it are to pause; none while they are to run. A wish from before a loop listened counts
/// for it too, and a later one counts only if it is more urgent. Without its sender nothing is wished.
pub type SignalRequests = watch::Receiver<Option<Urgency>>;

/// How a runner takes the signals that its process gets.
#[derive(Clone, Debug)]
pub enum Signals {
    /// At a terminal: SIGINT pauses after the iteration, a second one, SIGTERM and SIGHUP pause at once. SIGHUP does not if it
    /// is ignored, as by `nohup`.
    Foreground,
    /// Without one: the same, but SIGHUP is ignored.
    Detached,
    /// Not at all: the process belongs to a host, which asks through the service.
    None,
    /// Not at all: the process drives other loops too, and says here when this one is to pause. All else is asked
    /// through the service.
    Given(SignalRequests),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignalRequest {
    /// A pause after the iteration; said twice, at once.
    Interrupt,
    Pause(Urgency),
}

pub(crate) struct SignalSources {
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
    hangup: Option<Signal>,
    heed_hangup: bool,
    wishes: Option<SignalRequests>,
}

/// Listens to SIGHUP; none if this process was started to ignore it.
pub fn hangup() -> io::Result<Option<Signal>> {
    if tool::is_hangup_ignored() { Ok(None) } else { signal(SignalKind::hangup()).map(Some) }
}

/// Returns at the next one; never without a signal.
pub async fn next_of(signal: &mut Option<Signal>) {
    let heard = match signal {
        Some(signal) => signal.recv().await,
        None => None,
    };
    if heard.is_none() {
        std::future::pending().await
    }
}

impl SignalSources {
    pub(crate) fn new(signals: Signals) -> Result<Self, EngineError> {
        if let Signals::Detached = signals {
            detach::leave_terminal();
        }
        if let Signals::Foreground | Signals::Detached = signals {
            tool::leave_signals();
        }
        let listen = |kind| match signals {
            Signals::None | Signals::Given(_) => Ok(None),
            Signals::Foreground | Signals::Detached => signal(kind).map(Some),
        };
        let all = || {
            Ok(Self {
                interrupt: listen(SignalKind::interrupt())?,
                terminate: listen(SignalKind::terminate())?,
                hangup: match signals {
                    Signals::None | Signals::Given(_) => None,
                    Signals::Foreground | Signals::Detached => hangup()?,
                },
                heed_hangup: matches!(signals, Signals::Foreground),
                wishes: None,
            })
        };
        let sources = all().map_err(|error| EngineError::Process("signals cannot be listened to", error))?;
        Ok(match signals {
            Signals::Given(wishes) => Self { wishes: Some(wishes), ..sources },
            Signals::Foreground | Signals::Detached | Signals::None => sources,
        })
    }

    /// A wish from before the loop listened.
    pub(crate) fn standing(&mut self) -> Option<SignalRequest> {
        self.wishes.as_mut()?.borrow_and_update().map(SignalRequest::Pause)
    }

    /// The next wish; never, if no signals are listened to.
    pub(crate) async fn next(&mut self) -> SignalRequest {
        async fn wished(wishes: &mut Option<SignalRequests>) -> Urgency {
            if let Some(wishes) = wishes {
                while wishes.changed().await.is_ok() {
                    if let Some(urgency) = *wishes.borrow_and_update() {
                        return urgency;
                    }
                }
            }
            std::future::pending().await
        }
        loop {
            tokio::select! {
                () = next_of(&mut self.interrupt) => return SignalRequest::Interrupt,
                () = next_of(&mut self.terminate) => return SignalRequest::Pause(Urgency::Now),
                urgency = wished(&mut self.wishes) => return SignalRequest::Pause(urgency),
                () = next_of(&mut self.hangup) => {
                    if self.heed_hangup {
                        return SignalRequest::Pause(Urgency::Now);
                    }
                }
            }
        }
    }
}
