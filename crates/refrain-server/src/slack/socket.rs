//! Listening to Slack: one connection in socket mode, kept open by the client's library. Each envelope is acknowledged at
//! once, as soon as what it asks for is kept; nothing is done here. There is no other way in: what is asked over it was let in by
//! Slack's own connection, which our token opened, so that nothing unsigned can be said to us.

use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use refrain_engine::Pending;
use slack_morphism::clients_manager::{SlackSocketModeClientsManager, SlackSocketModeClientsManagerFactory};
use slack_morphism::errors::SlackClientError;
use slack_morphism::listener::SlackClientEventsListenerEnvironment;
use slack_morphism::{
    SlackClientSocketModeConfig, SlackSocketModeClientListener, SlackSocketModeWssClientId,
};
use tokio::sync::mpsc::UnboundedSender;

use super::api::Api;
use super::heard::{self, Heard, Request};

/// A connection that was shorter is not opened again at once.
const SHORT: Duration = Duration::from_secs(5);
/// How long it rests before the next.
const REST: u64 = 5;
/// How many envelopes are remembered: one that comes again is acknowledged, and nothing else.
const REMEMBERED: usize = 1_000;

type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
type Manager = dyn SlackSocketModeClientsManager + Send + Sync;

/// Who listens.
struct Ear {
    asked: Arc<Pending>,
    requests: UnboundedSender<Request>,
    manager: OnceLock<Weak<Manager>>,
    seen: Mutex<Vec<String>>,
    opened: Mutex<Option<Instant>>,
}

/// Opens the connection, and keeps it: what is asked comes out of `requests`. Ends it where what this answers is shut down.
pub(super) async fn listen(
    api: &Api,
    asked: Arc<Pending>,
    requests: UnboundedSender<Request>,
) -> Result<Arc<Manager>, SlackClientError> {
    let environment = Arc::new(SlackClientEventsListenerEnvironment::new(Arc::new(api.client())));
    let manager = environment.client.http_api.connector.new_clients_manager(Arc::clone(&environment));
    let ear =
        Ear { asked, requests, manager: OnceLock::new(), seen: Mutex::default(), opened: Mutex::default() };
    let _ = ear.manager.set(Arc::downgrade(&manager));
    let config = SlackClientSocketModeConfig::new()
        .with_max_connections_count(1)
        .with_reconnect_timeout_in_seconds(REST);
    manager.register_new_token(&config, api.app().clone(), Arc::new(ear)).await?;
    manager.start().await;
    Ok(manager)
}

impl Ear {
    /// What an envelope is answered with.
    fn hear(&self, id: &str, request: Option<Request>) -> Option<String> {
        let acknowledged = serde_json::json!({ "envelope_id": id }).to_string();
        let is_new = self.is_new(id) && request.as_ref().is_none_or(|request| self.is_new(&request.key));
        if let Some(request) = request.filter(|_| is_new) {
            // What cannot be kept is not acknowledged: Slack asks again.
            if self.asked.keep(&request.key, &request).is_err() {
                self.forget(&[id, &request.key]);
                return None;
            }
            // Whoever does it is gone only when all of this is.
            let _ = self.requests.send(request);
        }
        Some(acknowledged)
    }

    fn is_new(&self, key: &str) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.iter().any(|other| other == key) {
            return false;
        }
        if seen.len() >= REMEMBERED {
            seen.drain(..REMEMBERED / 2);
        }
        seen.push(key.to_owned());
        true
    }

    fn forget(&self, keys: &[&str]) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.retain(|key| !keys.contains(&key.as_str()));
    }

    async fn again(&self, client: &SlackSocketModeWssClientId) {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner).take();
        // One that Slack closes again and again is not asked for all the time.
        if opened.is_none_or(|opened| opened.elapsed() < SHORT) {
            tokio::time::sleep(Duration::from_secs(REST)).await;
        }
        if let Some(manager) = self.manager.get().and_then(Weak::upgrade) {
            manager.restart_client(client).await;
        }
    }
}

impl SlackSocketModeClientListener for Ear {
    fn on_message<'a, 'b, 'c>(
        &'a self,
        client: &'b SlackSocketModeWssClientId,
        message: String,
    ) -> Answer<'c, Option<String>>
    where
        'a: 'c,
        'b: 'c,
        Self: 'c,
    {
        Box::pin(async move {
            match heard::read(&message) {
                Heard::Hello => {
                    *self.opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
                    None
                }
                Heard::Disconnect => {
                    self.again(client).await;
                    None
                }
                Heard::Envelope { id, request } => self.hear(&id, request.map(|request| *request)),
                Heard::Noise => None,
            }
        })
    }

    fn on_error<'a, 'c>(&'a self, _: Box<dyn std::error::Error + Send + Sync + 'static>) -> Answer<'c, ()>
    where
        'a: 'c,
        Self: 'c,
    {
        // What follows is that the connection is opened again.
        Box::pin(async {})
    }

    fn on_disconnect<'a, 'b, 'c>(&'a self, client: &'b SlackSocketModeWssClientId) -> Answer<'c, ()>
    where
        'a: 'c,
        'b: 'c,
        Self: 'c,
    {
        Box::pin(self.again(client))
    }
}
