//! What all requests share: the desk, who may come in, and under which names the server is found.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rand::RngExt;
use refrain_engine::{Keys, now};

use super::copies::Copies;
use super::failure::Failure;
use super::live::Hub;
use crate::desk::{Desk, Refusal};

/// How long a code that opens the door once is good.
const CODE: Duration = Duration::from_mins(10);
/// How many wrong tokens are looked at in a minute.
const TRIES: u32 = 20;
const MINUTE: Duration = Duration::from_mins(1);

/// The door.
#[derive(Debug)]
pub(super) struct Door {
    pub(super) desk: Arc<Desk>,
    pub(super) hub: Arc<Hub>,
    pub(super) copies: Copies,
    keys: Keys,
    /// What a `Host` may say: whoever is sent here under another name was sent by somebody else.
    pub(super) hosts: Vec<String>,
    /// How a proxy in front is reached.
    pub(super) public: Option<String>,
    /// Browsers keep cookies by host, whatever the port.
    pub(super) cookie: String,
    /// A code that opens the door once, and until when.
    code: Mutex<Option<(String, Instant)>>,
    /// Wrong tokens since then.
    wrong: Mutex<(u32, Instant)>,
}

impl Door {
    pub(super) fn new(desk: Arc<Desk>, at: SocketAddr, public: Option<String>) -> Self {
        let port = at.port();
        let own = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{port}"));
        let public_host =
            public.iter().filter_map(|origin| origin.split_once("://")).map(|(_, host)| host.to_owned());
        Self {
            hub: Arc::new(Hub::new(Arc::clone(&desk))),
            copies: Copies::default(),
            keys: desk.keys(),
            hosts: own.into_iter().chain([at.to_string()]).chain(public_host).collect(),
            cookie: format!("refrain_{port}"),
            code: Mutex::new(None),
            wrong: Mutex::new((0, Instant::now())),
            desk,
            public,
        }
    }

    /// A code that opens the door once.
    pub(super) fn make_code(&self) -> String {
        let code = random();
        *lock(&self.code) = Some((code.clone(), Instant::now() + CODE));
        code
    }

    /// A token for whoever has the code, which is good no more.
    pub(super) async fn exchange(&self, code: &str) -> Option<String> {
        let is_it = {
            let mut kept = lock(&self.code);
            // Hashes, so that how long it takes says nothing.
            let is_good = |(known, until): &(String, Instant)| {
                blake3::hash(known.as_bytes()) == blake3::hash(code.as_bytes()) && Instant::now() < *until
            };
            let is_it = kept.as_ref().is_some_and(is_good);
            if is_it {
                *kept = None;
            }
            is_it
        };
        if is_it { self.give_token().await } else { None }
    }

    /// A new token.
    pub(super) async fn give_token(&self) -> Option<String> {
        let (keys, token) = (self.keys.clone(), random());
        let made = token.clone();
        let added = tokio::task::spawn_blocking(move || keys.add(&made, now())).await;
        added.is_ok_and(|added| added.is_ok()).then_some(token)
    }

    /// Whether this token was given out.
    pub(super) async fn knows(&self, token: &str) -> bool {
        let (keys, token) = (self.keys.clone(), token.to_owned());
        tokio::task::spawn_blocking(move || keys.has(&token, now())).await.unwrap_or(false)
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

    /// Does what blocks on a thread that may.
    pub(super) async fn at_desk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Desk) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Failure> {
        let desk = Arc::clone(&self.desk);
        match tokio::task::spawn_blocking(move || work(&desk)).await {
            Ok(done) => done.map_err(Failure::from),
            Err(error) => Err(Failure::new(
                axum::http::StatusCode::INTERNAL_SERVER_ERROR,
                format!("refrain broke off in the middle of this: {error}"),
            )),
        }
    }
}

/// 256 bits that nobody guesses, in hex.
fn random() -> String {
    let bytes: [u8; 32] = rand::rng().random();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A new token for a program, kept so that it is let in from now on.
///
/// # Errors
/// What the system said where it cannot be kept.
pub fn new_token(desk: &Desk) -> Result<String, refrain_engine::DiskError> {
    let token = random();
    desk.keys().add(&token, now())?;
    Ok(token)
}

/// Lets nobody in any more who was; how many tokens were good.
///
/// # Errors
/// What the system said where one of them stays.
pub fn revoke_tokens(desk: &Desk) -> Result<usize, refrain_engine::DiskError> {
    desk.keys().revoke()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
