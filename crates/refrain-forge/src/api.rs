//! One HTTP request to a forge, sent by the forge's program or by our own client.

pub(crate) mod client;
pub(crate) mod exchange;
pub(crate) mod program;

use reqwest::Method;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::client::Client;
use crate::api::exchange::ForgeResponse;
use crate::api::program::Program;
use crate::error::Trouble;

/// The page size of lists: the maximum of both forges.
const PAGE: usize = 100;

/// How many pages are read: no real commit has more checks than that.
const MOST_PAGES: usize = 20;

#[derive(Debug)]
pub(super) enum Api {
    /// `gh` or `glab`, with the user's login.
    Program(Program),
    /// Our own client, with a token.
    Client(Client),
}

impl Api {
    /// Sends one request.
    /// Errors: [`Trouble`], also if the answer's status is not a success.
    pub(super) fn ask(
        &self,
        method: &Method,
        endpoint: &str,
        body: Option<&Value>,
    ) -> Result<ForgeResponse, Trouble> {
        match self {
            Self::Program(program) => program.ask(method, endpoint, body),
            Self::Client(client) => client.ask(method, endpoint, body),
        }
    }

    pub(super) fn get<T: DeserializeOwned>(&self, endpoint: &str) -> Result<T, Trouble> {
        read(endpoint, &self.ask(&Method::GET, endpoint, None)?.body)
    }

    /// The part of the answer at a JSON pointer; none if the thing does not exist, or this login may not see it.
    pub(super) fn look<T: DeserializeOwned>(&self, endpoint: &str, at: &str) -> Result<Option<T>, Trouble> {
        match self.get(endpoint).and_then(|answer| part(endpoint, answer, at)) {
            Ok(found) => Ok(Some(found)),
            Err(Trouble::NotFound { .. } | Trouble::NoPermission { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }

    pub(super) fn send<T: DeserializeOwned>(
        &self,
        method: &Method,
        endpoint: &str,
        body: &Value,
    ) -> Result<T, Trouble> {
        read(endpoint, &self.ask(method, endpoint, Some(body))?.body)
    }

    /// All pages of a list, which is at a JSON pointer of each answer.
    pub(super) fn all<T: DeserializeOwned>(&self, endpoint: &str, at: &str) -> Result<Vec<T>, Trouble> {
        let (mut found, joint) = (Vec::new(), if endpoint.contains('?') { '&' } else { '?' });
        for page in 1..=MOST_PAGES {
            let asked = format!("{endpoint}{joint}per_page={PAGE}&page={page}");
            let more: Vec<T> = part(&asked, self.get(&asked)?, at)?;
            let is_last = more.len() < PAGE;
            found.extend(more);
            if is_last {
                break;
            }
        }
        Ok(found)
    }
}

fn read<T: DeserializeOwned>(endpoint: &str, body: &[u8]) -> Result<T, Trouble> {
    serde_json::from_slice(body).map_err(|source| not_understood(endpoint, source))
}

/// The part of an answer at a JSON pointer; a missing part is null.
pub(super) fn part<T: DeserializeOwned>(endpoint: &str, mut answer: Value, at: &str) -> Result<T, Trouble> {
    let found = answer.pointer_mut(at).map(Value::take).unwrap_or_default();
    serde_json::from_value(found).map_err(|source| not_understood(endpoint, source))
}

fn not_understood(endpoint: &str, source: serde_json::Error) -> Trouble {
    Trouble::Answer { asked: endpoint.to_owned(), source }
}
