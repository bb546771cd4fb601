//! Notifies a client that a resource has changed. At most one notification waits to be sent, so a client that does not
//! read costs no more than that.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use refrain_engine::Changes;
use rmcp::RoleServer;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, SubscriptionContext};
use tokio::sync::mpsc::{self, Receiver};
use tokio::task::{AbortHandle, JoinSet};

use super::Mcp;
use crate::requests::{Address, Part, Refusal};

/// How many resources one client may follow: each costs a thread that waits.
const MOST: usize = 64;
/// How often a waiting thread checks that its client still subscribes.
const LOOK: Duration = Duration::from_secs(1);

/// The subscriptions of a client that names resources one by one.
#[derive(Debug, Default)]
pub(super) struct Subscriptions(Mutex<BTreeMap<String, AbortHandle>>);

impl Subscriptions {
    pub(super) fn forget(&self, uri: &str) {
        if let Some(told) = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(uri) {
            told.abort();
        }
    }

    fn keep(&self, uri: String, told: AbortHandle) {
        if let Some(before) = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(uri, told) {
            before.abort();
        }
    }

    fn has_room(&self, uri: &str) -> bool {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.len() < MOST || kept.contains_key(uri)
    }
}

impl Drop for Subscriptions {
    fn drop(&mut self) {
        let kept = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        kept.values().for_each(AbortHandle::abort);
    }
}

impl Mcp {
    /// Notifies this client of a resource's changes until it unsubscribes.
    pub(super) async fn follow(&self, uri: String, peer: Peer<RoleServer>) -> Result<(), Refusal> {
        if !self.subscriptions.has_room(&uri) {
            return Err(too_many(&uri));
        }
        let mut news = self.news(&uri).await?;
        let name = uri.clone();
        let told = tokio::spawn(async move {
            while news.recv().await.is_some() {
                let changed = ResourceUpdatedNotificationParam::new(name.clone());
                if peer.notify_resource_updated(changed).await.is_err() {
                    return;
                }
            }
        });
        self.subscriptions.keep(uri, told.abort_handle());
        Ok(())
    }

    /// The same for all resources of one request, as in newer revisions of the protocol.
    pub(super) async fn follow_all(&self, subscription: SubscriptionContext) -> Result<(), Refusal> {
        let uris = subscription.accepted().resource_subscriptions.clone().unwrap_or_default();
        if let Some(uri) = uris.get(MOST) {
            return Err(too_many(uri));
        }
        let mut told = JoinSet::new();
        for uri in uris {
            let (mut news, sink) = (self.news(&uri).await?, subscription.sink().clone());
            told.spawn(async move {
                // The client was told of its subscription before it began: notify once for changes in between.
                while sink.notify_resource_updated(uri.clone()).await.is_ok() {
                    if news.recv().await.is_none() {
                        return;
                    }
                }
            });
        }
        subscription.cancelled().await;
        Ok(())
    }

    /// The changes of a resource, until the receiver is dropped.
    async fn news(&self, uri: &str) -> Result<Receiver<()>, Refusal> {
        let address: Address = uri.parse()?;
        let at = address.clone();
        let mut changes: Changes = self.run_blocking(move |handler| handler.changes_at(&at)).await?;
        let (say, news) = mpsc::channel(1);
        tokio::task::spawn_blocking(move || {
            while !say.is_closed() {
                let changed = changes.wait(LOOK);
                let is_it = match address.part {
                    Part::State => changed.state,
                    Part::Journal { .. } => changed.journal,
                };
                if is_it && say.blocking_send(()).is_err() {
                    return;
                }
            }
        });
        Ok(news)
    }
}

fn too_many(uri: &str) -> Refusal {
    Refusal::new(format!("{uri}: at most {MOST} resources are followed at a time; unsubscribe from others"))
}
