//! The notices that a webhook is owed of one journal, and the tries to deliver them.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use refrain_core::view::notice::Notice;
use refrain_store::LoopDir;
use refrain_store::outbox::webhook::DeliveredUpTo;
use tokio::runtime::{Builder, Runtime};

use crate::observe::webhook::{DeliveryError, PATIENCE, Webhook};

/// How long a runner keeps trying once its loop has stopped.
const AT_THE_END: Duration = Duration::from_secs(5);

pub(super) struct Post {
    webhook: Webhook,
    runtime: Runtime,
    told: DeliveredUpTo,
    owed: VecDeque<Notice>,
    delays: ExponentialBackoff,
    next: Instant,
    /// Why the last try came to nothing.
    trouble: Option<String>,
    /// The receiver does not want it: it is not asked again from here.
    is_refused: bool,
}

impl Post {
    /// Events up to `past` are not for a webhook that never got a notice of the loop.
    pub(super) fn begin(webhook: Webhook, dir: &LoopDir, past: u64) -> io::Result<Self> {
        let told = DeliveredUpTo::read(dir).unwrap_or_else(|| {
            let told = DeliveredUpTo { seq: past, bytes: 0 };
            // Without it what is owed is forgotten should this process die; nothing else depends on it.
            let _ = told.write(dir);
            told
        });
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (owed, next, delays) = (VecDeque::new(), Instant::now(), delays());
        Ok(Self { webhook, runtime, told, owed, delays, next, trouble: None, is_refused: false })
    }

    pub(super) fn take(&mut self, notice: &Notice) {
        if notice.seq > self.told.seq {
            self.owed.push_back(notice.clone());
        }
    }

    /// How long until the next try; none if there is none.
    pub(super) fn wait(&self) -> Option<Duration> {
        let is_due = !self.owed.is_empty() && !self.is_refused;
        is_due.then(|| self.next.saturating_duration_since(Instant::now()))
    }

    /// Delivers what is owed, oldest first, until the receiver does not take one.
    pub(super) fn deliver(&mut self, dir: &LoopDir, patience: Duration) {
        while let Some(notice) = self.owed.front() {
            match self.runtime.block_on(self.webhook.post(notice, patience)) {
                Ok(()) => {
                    self.told = DeliveredUpTo { seq: notice.seq, bytes: 0 };
                    let _ = self.told.write(dir);
                    self.owed.pop_front();
                    (self.delays, self.trouble) = (delays(), None);
                }
                Err(DeliveryError::Again(why, rest)) => {
                    let delay = self.delays.next().unwrap_or_default();
                    self.next = Instant::now() + rest.unwrap_or_default().max(delay);
                    self.trouble = Some(why);
                    return;
                }
                Err(DeliveryError::Refused(why)) => {
                    (self.trouble, self.is_refused) = (Some(why), true);
                    return;
                }
            }
        }
    }

    /// The last tries, for a short while. `seen` is how far the journal was looked through.
    pub(super) fn finish(mut self, dir: &LoopDir, seen: DeliveredUpTo) -> Option<String> {
        let deadline = Instant::now() + AT_THE_END;
        while let Some(wait) = self.wait() {
            let left = deadline.saturating_duration_since(Instant::now());
            if wait >= left {
                break;
            }
            self.runtime.block_on(async { tokio::time::sleep(wait).await });
            self.deliver(dir, left.saturating_sub(wait).min(PATIENCE));
        }
        if self.owed.is_empty() {
            let _ = seen.write(dir);
            return None;
        }
        let why = self.trouble.unwrap_or_else(|| "there was no time".to_owned());
        Some(format!("{why}; the loop's next runner sends it, or refrain resume --all"))
    }
}

/// The pauses between tries, with something of chance in them.
fn delays() -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_jitter()
        .with_min_delay(Duration::from_millis(500))
        .with_max_delay(Duration::from_secs(300))
        .without_max_times()
        .build()
}
