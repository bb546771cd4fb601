//! Keeps Slack's message of one loop current: look, do the next deed, note it, wait. A deed is noted before and after
//! it, so that a process that continues after a crash knows what may have been done, and asks Slack.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use refrain_core::LoopId;
use refrain_engine::{Changes, Delivery, Service, Talk};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use super::api::Fault;
use super::next_action::{self, NextAction};
use super::render::{LoopSummary, MessageView, Notes};
use super::{SlackWorkspace, blocking};

/// How often a waiting thread checks that its result is still wanted.
const LOOK: Duration = Duration::from_secs(1);
/// How often a silent loop is checked: a runner that was killed writes nothing.
const SILENCE: Duration = Duration::from_secs(10);
/// The first pause after a failure, and the longest.
const RESTS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Errors that only a person can fix; until then no message is given up.
const OF_THE_APP: [&str; 8] = [
    "access_denied",
    "account_inactive",
    "ekm_access_denied",
    "invalid_auth",
    "not_authed",
    "org_login_required",
    "token_expired",
    "token_revoked",
];

/// One loop, and the task that reports it.
pub(super) struct SlackSync {
    pub(super) slack: Arc<SlackWorkspace>,
    pub(super) service: Service,
    pub(super) id: LoopId,
    /// Set when the task should look at once.
    pub(super) poked: Arc<AtomicBool>,
}

impl SlackSync {
    /// Posts until a stopped loop has no pending message; the next task continues after an error.
    pub(super) async fn run(self) {
        let Some(mut changes) = self.changes().await else { return };
        let (mut has_turn, mut rest) = (false, RESTS.0);
        while let Some((talk, seen)) = self.look().await {
            // An agent may have written the file beside its journal: other channels are refused.
            let is_unwanted = talk.message == Delivery::Refused || !self.slack.hears(&talk.channel);
            if is_unwanted || next_action::is_settled(&talk, &seen) {
                let _ = self.note(move |talk| (talk.bytes, talk.seq) = (seen.bytes, seen.seq)).await;
                return;
            }
            let Some(deed) = next_action::next(&talk, &seen) else {
                changes = self.wait(changes).await;
                continue;
            };
            let writes = !matches!(deed, NextAction::React { .. });
            if writes && !has_turn {
                self.slack.api.turn(&talk.channel).await;
                // Post the current state.
                has_turn = true;
                continue;
            }
            has_turn = false;
            match self.perform(&talk, &seen, deed).await {
                Ok(()) => rest = RESTS.0,
                Err(why) => {
                    self.slack.complain(&format!("{}: {why}; it is reported later", self.id));
                    sleep(rest).await;
                    rest = (rest * 2).min(RESTS.1);
                }
            }
        }
    }

    async fn changes(&self) -> Option<Changes> {
        let (service, id) = (self.service.clone(), self.id.clone());
        blocking(move || service.changes(&id)).await
    }

    async fn look(&self) -> Option<(Talk, LoopSummary)> {
        let (service, id) = (self.service.clone(), self.id.clone());
        blocking(move || Ok::<_, refrain_engine::EngineError>((service.talk(&id)?, service.glance(&id)?)))
            .await
            .and_then(|(talk, glance)| Some((talk?, glance.into())))
    }

    /// Waits until there may be something new.
    async fn wait(&self, mut changes: Changes) -> Changes {
        let since = Instant::now();
        loop {
            let waited = spawn_blocking(move || {
                let changed = changes.wait(LOOK);
                (changes, changed)
            });
            // Only a panic ends it; the next look then reads the current state.
            let Ok((kept, changed)) = waited.await else { return std::future::pending().await };
            let is_news = changed.journal || changed.state || self.poked.swap(false, Ordering::SeqCst);
            if is_news || since.elapsed() > SILENCE {
                return kept;
            }
            changes = kept;
        }
    }

    async fn note(&self, change: impl FnOnce(&mut Talk) + Send + 'static) -> Result<(), String> {
        let noted = self.slack.note(&self.service, &self.id, change).await;
        noted.then_some(()).ok_or_else(|| "it cannot be noted".to_owned())
    }

    async fn perform(&self, talk: &Talk, seen: &LoopSummary, deed: NextAction) -> Result<(), String> {
        match deed {
            NextAction::Post(text) => self.post(talk, seen, &text).await,
            NextAction::Edit(view) => self.edit(talk, view).await,
            NextAction::React { remove, add } => self.react(talk, &remove, add).await,
            NextAction::Reply(notes) => self.reply(talk, seen, notes).await,
        }
    }

    async fn post(&self, talk: &Talk, seen: &LoopSummary, text: &str) -> Result<(), String> {
        let mark = format!("{}-{}", seen.id, seen.started);
        let thread = talk.thread.as_deref();
        let found = match talk.message {
            Delivery::Intended => self.find(talk, thread, &mark).await?,
            Delivery::Not | Delivery::At(_) | Delivery::Refused => {
                self.note(|talk| talk.message = Delivery::Intended).await?;
                None
            }
        };
        let posted = match found {
            Some(ts) => Delivery::At(ts),
            None => self.sent(self.slack.api.say(&talk.channel, thread, text, &mark).await)?,
        };
        self.note(|talk| talk.message = posted).await?;
        Ok(())
    }

    async fn edit(&self, talk: &Talk, view: MessageView) -> Result<(), String> {
        let Delivery::At(ts) = &talk.message else { return Ok(()) };
        self.given_up(self.slack.api.edit(&talk.channel, ts, &view).await)?;
        self.note(move |talk| talk.shown = Some(view.mark())).await?;
        Ok(())
    }

    async fn react(&self, talk: &Talk, remove: &[String], add: &'static str) -> Result<(), String> {
        let Some(to) = next_action::reacted(talk) else { return Ok(()) };
        for name in remove {
            self.given_up(self.slack.api.react(&talk.channel, to, name, false).await)?;
        }
        self.given_up(self.slack.api.react(&talk.channel, to, add, true).await)?;
        self.note(move |talk| talk.reaction = Some(add.to_owned())).await?;
        Ok(())
    }

    async fn reply(&self, talk: &Talk, seen: &LoopSummary, notes: Notes) -> Result<(), String> {
        let ended = seen.ended.unwrap_or_default();
        let (thread, name) = (next_action::thread(talk), format!("{}-state-{ended}.md", seen.id));
        let found = match &talk.reply {
            Some((of, Delivery::Intended)) if *of == ended => self.find(talk, thread, &name).await?,
            _ => {
                self.note(move |talk| talk.reply = Some((ended, Delivery::Intended))).await?;
                None
            }
        };
        let api = &self.slack.api;
        let sent = match (found, notes) {
            (Some(ts), _) => Delivery::At(ts),
            (None, Notes::Said(text)) => self.sent(api.say(&talk.channel, thread, &text, &name).await)?,
            (None, Notes::File { comment, content, instead }) => {
                match api.upload(&talk.channel, thread, &name, &comment, &content).await {
                    Ok(()) => Delivery::At(String::new()),
                    Err(Fault::Refused(why)) if !OF_THE_APP.contains(&why.as_str()) => {
                        self.slack.complain(&format!("{}: no file: {why}", self.id));
                        self.sent(api.say(&talk.channel, thread, &instead, &name).await)?
                    }
                    Err(fault) => return Err(why(fault)),
                }
            }
        };
        self.note(move |talk| talk.reply = Some((ended, sent))).await?;
        Ok(())
    }

    /// The message, or the file, that may have been posted.
    async fn find(&self, talk: &Talk, thread: Option<&str>, mark: &str) -> Result<Option<String>, String> {
        match self.slack.api.find(&talk.channel, thread, mark).await {
            // If it cannot be looked up, rather post it twice than never.
            Err(Fault::Refused(why)) if !OF_THE_APP.contains(&why.as_str()) => Ok(None),
            found => found.map_err(why),
        }
    }

    /// The result of posting: a message that Slack refuses will never be sent.
    fn sent(&self, posted: Result<String, Fault>) -> Result<Delivery, String> {
        match posted {
            Ok(ts) => Ok(Delivery::At(ts)),
            fault => self.given_up(fault.map(drop)).map(|()| Delivery::Refused),
        }
    }

    /// Whether it was done, or Slack refuses it, which is reported.
    fn given_up(&self, done: Result<(), Fault>) -> Result<(), String> {
        match done {
            Err(Fault::Refused(why)) if !OF_THE_APP.contains(&why.as_str()) => {
                self.slack.complain(&format!("{}: {why}", self.id));
                Ok(())
            }
            done => done.map_err(why),
        }
    }
}

fn why(fault: Fault) -> String {
    match fault {
        Fault::Again(why, _) | Fault::Refused(why) => why,
    }
}
