//! Long logs of loops, at a place that all machines reach: workers put them there under their hash, and a person's machine brings
//! them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{ObjectStoreExt, RetryConfig};
use refrain_app::{Code, RequestError};
use refrain_core::LoopId;
use refrain_core::text::printable;
use refrain_core::view::seal::Sealing;
use refrain_engine::config::keys::BlobPlace;
use refrain_engine::{EngineError, LogFolder, LogStore, Service, chain, http};
use tokio::runtime::Handle;

use crate::host::Worker;
use crate::settings::{Settings, failed};

/// How often a worker looks for logs that are whole by now.
const EVERY: Duration = Duration::from_secs(10);
/// How long a request to a bucket is tried again, and how often.
const PATIENCE: Duration = Duration::from_secs(15);
const AGAIN: usize = 2;

/// A bucket of S3, or of a server that speaks like it. Who may use it, the variables say: AWS_ACCESS_KEY_ID and the others.
#[derive(Debug)]
struct LogBucket {
    address: String,
    /// What all names in it begin with.
    prefix: String,
    bucket: AmazonS3,
    runtime: Handle,
}

impl LogBucket {
    fn new(address: &str) -> Result<Self, RequestError> {
        // Its client finds the cryptography that this one installs.
        drop(http::client("refrain"));
        let retry = RetryConfig { max_retries: AGAIN, retry_timeout: PATIENCE, ..RetryConfig::default() };
        let made = AmazonS3Builder::from_env().with_url(address).with_retry(retry).build();
        let bucket = made.map_err(|error| {
            RequestError::usage(format!("[fleet] blobs: {address}: {}", line(&error)))
                .hint("AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION say who you are; AWS_ENDPOINT names another server")
        })?;
        let rest = address.trim_start_matches("s3://").split_once('/').map_or("", |(_, prefix)| prefix);
        Ok(Self { address: address.to_owned(), prefix: rest.to_owned(), bucket, runtime: Handle::current() })
    }

    fn path(&self, hash: &str) -> Path {
        Path::from(format!("{}/{hash}", self.prefix))
    }

    async fn read(&self, hash: &str, bytes: u64) -> Result<Option<Vec<u8>>, String> {
        let found = match self.bucket.get(&self.path(hash)).await {
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            found => found.map_err(|error| line(&error))?,
        };
        if found.meta.size != bytes {
            return Err(format!("what it has there has {} bytes, not {bytes}", found.meta.size));
        }
        let content = found.bytes().await.map_err(|error| line(&error))?;
        Ok(Some(content.to_vec()))
    }

    async fn write(&self, hash: &str, content: Vec<u8>) -> Result<(), String> {
        let path = self.path(hash);
        if self.bucket.head(&path).await.is_ok_and(|there| there.size == content.len() as u64) {
            return Ok(());
        }
        self.bucket.put(&path, content.into()).await.map(drop).map_err(|error| line(&error))
    }
}

/// What a server answers may have many lines.
fn line(error: &object_store::Error) -> String {
    let words: String = printable(&chain(error)).split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().take(300).collect()
}

impl LogStore for LogBucket {
    fn address(&self) -> &str {
        &self.address
    }

    fn put(&self, hash: &str, content: &[u8]) -> Result<(), String> {
        self.runtime.block_on(self.write(hash, content.to_vec()))
    }

    fn get(&self, hash: &str, bytes: u64) -> Result<Option<Vec<u8>>, String> {
        self.runtime.block_on(self.read(hash, bytes))
    }
}

/// The place that the configuration names.
pub(crate) fn store(settings: &Settings) -> Result<Option<Arc<dyn LogStore>>, RequestError> {
    Ok(match settings.blobs() {
        BlobPlace::Git => None,
        BlobPlace::Folder(path) => Some(Arc::new(LogFolder::new(&path))),
        BlobPlace::S3(address) => Some(Arc::new(LogBucket::new(&address)?)),
    })
}

/// Puts something small there, always the same, and reads it.
pub(crate) fn check(store: &dyn LogStore) -> Result<(), String> {
    const CONTENT: &[u8] = b"refrain doctor";
    let mut sealing = Sealing::default();
    sealing.add(CONTENT);
    let hash = sealing.done().blake3;
    store.put(&hash, CONTENT)?;
    match store.get(&hash, CONTENT.len() as u64)? {
        Some(found) if found == CONTENT => Ok(()),
        Some(_) | None => Err("what was put there cannot be read".to_owned()),
    }
}

/// Prints a log of the place.
pub(crate) async fn print(settings: &Settings, hash: String, bytes: u64) -> Result<(), RequestError> {
    let Some(store) = store(settings)? else {
        return Err(RequestError::usage("[fleet] blobs names no place for logs"));
    };
    let address = store.address().to_owned();
    let read = tokio::task::spawn_blocking(move || store.get(&hash, bytes)).await.map_err(failed)?;
    match read.map_err(failed)? {
        Some(content) => crate::say::print_bytes(&content).map_err(failed),
        None => Err(RequestError::new(Code::NotFound, format!("{address} does not have it"))),
    }
}

/// Drives a loop, and puts its logs at the place meanwhile. Their absence there stops no loop: the worker has them.
pub(crate) fn keep_during<T>(
    worker: &Worker,
    service: &Service,
    id: &LoopId,
    drive: impl FnOnce() -> T,
) -> T {
    let Some(store) = &worker.logs else { return drive() };
    let (ends, ended) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let (mut kept, mut said) = (BTreeSet::new(), None);
            loop {
                let is_over = !matches!(ended.recv_timeout(EVERY), Err(RecvTimeoutError::Timeout));
                let failure = keep(service, id, store.as_ref(), &mut kept);
                if failure != said
                    && let Some(why) = &failure
                {
                    worker.say(id.as_str(), &format!("its long logs are only here: {why}"));
                }
                said = failure;
                if is_over {
                    return;
                }
            }
        });
        let driven = drive();
        drop(ends);
        driven
    })
}

/// Puts the logs of a loop at the place. Returns why one of them is not there.
pub(crate) fn keep(
    service: &Service,
    id: &LoopId,
    store: &dyn LogStore,
    kept: &mut BTreeSet<String>,
) -> Option<String> {
    match service.keep_logs(id, store, kept) {
        Ok(failure) => failure,
        // Between a take-over and its journal there is none.
        Err(EngineError::Journal(_)) => None,
        Err(error) => Some(chain(&error)),
    }
}
