//! The shared state of all requests: the request handler, the credentials, and the names of the server.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rand::RngExt;
use refrain_engine::{Key, Keys, Pass, now};

use super::failure::Failure;
use super::live::EventBroadcaster;
use crate::http::listener::address::Names;
use crate::requests::{Refusal, RequestHandler};

/// How long the one-time login code is valid.
const CODE: Duration = Duration::from_mins(10);
/// How many wrong tokens are looked at in a minute.
const TRIES: u32 = 20;
const MINUTE: Duration = Duration::from_mins(1);

/// The state that all HTTP requests share.
#[derive(Debug)]
pub(super) struct AppState {
    pub(super) handler: Arc<RequestHandler>,
    pub(super) broadcaster: Arc<EventBroadcaster>,
    keys: Keys,
    pub(super) names: Names,
    /// The cookie's name, which contains the port: browsers keep cookies by host, for all ports.
    pub(super) cookie: String,
    /// The one-time login code, and until when it is valid.
    code: Mutex<Option<(String, Instant)>>,
    /// Wrong tokens since then.
    wrong: Mutex<(u32, Instant)>,
}

impl AppState {
    pub(super) fn new(handler: Arc<RequestHandler>, port: u16, names: Names) -> Self {
        // Browsers accept this prefix only from this host and over TLS, so no other host can set the cookie.
        let prefix = if names.is_secure() { "__Host-" } else { "" };
        Self {
            broadcaster: Arc::new(EventBroadcaster::new(Arc::clone(&handler))),
            keys: handler.keys(),
            names,
            cookie: format!("{prefix}refrain_{port}"),
            code: Mutex::new(None),
            wrong: Mutex::new((0, Instant::now())),
            handler,
        }
    }

    /// A new one-time login code.
    pub(super) fn make_code(&self) -> String {
        let code = random();
        *lock(&self.code) = Some((code.clone(), Instant::now() + CODE));
        code
    }

    /// Whether this is the code, which is good no more then.
    pub(super) fn takes(&self, code: &str) -> bool {
        let mut kept = lock(&self.code);
        // Hashes are compared, so that the time reveals nothing.
        let is_good = |(known, until): &(String, Instant)| {
            blake3::hash(known.as_bytes()) == blake3::hash(code.as_bytes()) && Instant::now() < *until
        };
        let is_it = kept.as_ref().is_some_and(is_good);
        if is_it {
            *kept = None;
        }
        is_it
    }

    /// A new cookie, for a browser that came under this host.
    pub(super) async fn bake(&self, host: String) -> Option<String> {
        let (keys, value) = (self.keys.clone(), random());
        let made = value.clone();
        let add = move || keys.add(Pass::Cookie { host: &host, value: &made }, now());
        tokio::task::spawn_blocking(add).await.is_ok_and(|added| added.is_ok()).then_some(value)
    }

    /// Whether this token was given out.
    pub(super) async fn knows(&self, token: &str) -> bool {
        let (keys, token) = (self.keys.clone(), token.to_owned());
        tokio::task::spawn_blocking(move || keys.has(Pass::Token(&token), now())).await.unwrap_or(false)
    }

    /// Whether this cookie was given to a browser that came under this host.
    pub(super) async fn knows_cookie(&self, host: String, value: String) -> bool {
        let keys = self.keys.clone();
        let has = move || keys.has(Pass::Cookie { host: &host, value: &value }, now());
        tokio::task::spawn_blocking(has).await.unwrap_or(false)
    }

    /// Notes that a token or a code was wrong; whether there were too many of late.
    pub(super) fn was_wrong(&self) -> bool {
        let mut wrong = lock(&self.wrong);
        if wrong.1.elapsed() > MINUTE {
            *wrong = (0, Instant::now());
        }
        wrong.0 += 1;
        wrong.0 > TRIES
    }

    /// Runs blocking work on a thread that may block.
    pub(super) async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&RequestHandler) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Failure> {
        let handler = Arc::clone(&self.handler);
        match tokio::task::spawn_blocking(move || work(&handler)).await {
            Ok(done) => done.map_err(Failure::from),
            Err(error) => Err(Failure::new(
                axum::http::StatusCode::INTERNAL_SERVER_ERROR,
                format!("refrain broke off in the middle of this: {error}"),
            )),
        }
    }
}

/// 256 random bits, in hex.
fn random() -> String {
    let bytes: [u8; 32] = rand::rng().random();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Creates and stores a new token for a program.
///
/// # Errors
/// The system's error if it cannot be stored.
pub fn new_token(handler: &RequestHandler) -> Result<String, refrain_engine::DiskError> {
    let token = random();
    handler.keys().add(Pass::Token(&token), now())?;
    Ok(token)
}

/// Revokes all tokens and cookies; returns how many there were.
///
/// # Errors
/// The system's error if one of them cannot be removed.
pub fn revoke_tokens(handler: &RequestHandler) -> Result<usize, refrain_engine::DiskError> {
    handler.keys().revoke()
}

/// The valid tokens and cookies.
#[must_use]
pub fn tokens(handler: &RequestHandler) -> Vec<Key> {
    handler.keys().list(now())
}

/// Revokes the token or cookie with this id; returns whether it existed.
///
/// # Errors
/// The system's error if it cannot be removed.
pub fn revoke_token(handler: &RequestHandler, id: &str) -> Result<bool, refrain_engine::DiskError> {
    handler.keys().revoke_one(id)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
