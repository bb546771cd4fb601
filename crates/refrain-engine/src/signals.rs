//! The signals that a runner's process gets, and what they ask of its loop.

use refrain_proc::detach;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::EngineError;

/// How a runner takes the signals that its process gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signals {
    /// At a terminal: SIGINT pauses after the iteration, a second one, SIGTERM and SIGHUP pause at once.
    Foreground,
    /// Without one: the same, but SIGHUP is ignored.
    Detached,
    /// Not at all: the process belongs to somebody else, who asks through the service.
    None,
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// A pause after the iteration; said twice, at once.
    Interrupt,
    /// A pause at once.
    Terminate,
}

/// The signals that a runner listens to.
pub(crate) struct SignalSources {
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
    hangup: Option<Signal>,
    heed_hangup: bool,
}

impl SignalSources {
    pub(crate) fn new(signals: Signals) -> Result<Self, EngineError> {
        if signals == Signals::Detached {
            detach::leave_terminal();
        }
        let listen = |kind| match signals {
            Signals::None => Ok(None),
            Signals::Foreground | Signals::Detached => signal(kind).map(Some),
        };
        let all = || {
            Ok(Self {
                interrupt: listen(SignalKind::interrupt())?,
                terminate: listen(SignalKind::terminate())?,
                hangup: listen(SignalKind::hangup())?,
                heed_hangup: signals == Signals::Foreground,
            })
        };
        all().map_err(|error| EngineError::Process("signals cannot be listened to", error))
    }

    /// The next wish; never, where no signals are listened to.
    pub(crate) async fn next(&mut self) -> Wish {
        async fn of(signal: &mut Option<Signal>) {
            let heard = match signal {
                Some(signal) => signal.recv().await,
                None => None,
            };
            if heard.is_none() {
                std::future::pending().await
            }
        }
        loop {
            tokio::select! {
                () = of(&mut self.interrupt) => return Wish::Interrupt,
                () = of(&mut self.terminate) => return Wish::Terminate,
                () = of(&mut self.hangup) => {
                    if self.heed_hangup {
                        return Wish::Terminate;
                    }
                }
            }
        }
    }
}
