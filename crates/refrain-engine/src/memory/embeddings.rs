//! Vectors of texts, from an endpoint that the user's own file names: OpenAI's kind, or Ollama's. Without one, or if it
//! does not answer, memories are found by their words alone.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::text::clip;
use refrain_secrets as secrets;
use refrain_store::config::{Embeddings, OwnMemory};
use refrain_store::memory::{self, MemoryError, Vector};
use refrain_store::outbox::webhook::{SecretError, secret};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, StatusCode};
use serde::Deserialize;

use crate::http::{self, BodyError};
use crate::{Host, chain};

/// The variable that may hold the key. No agent gets it: what begins so is not handed on.
const VARIABLE: &str = "REFRAIN_EMBEDDINGS_KEY";
const PATIENCE: Duration = Duration::from_secs(5);
/// How many memories are sent beside a goal, if they have no vector of its model yet.
const AT_ONCE: u32 = 64;
/// The longest text that is sent, in bytes.
const LONGEST: usize = 8_000;
/// The longest answer that is read, in bytes: a batch of vectors, with room.
const LARGEST: usize = 32 << 20;

/// Why there are no vectors. The memories are found by their words.
#[derive(Debug, thiserror::Error)]
pub(super) enum EmbedError {
    #[error("the key of [memory] embeddings is not sent, so memories are found by their words alone")]
    Key(#[source] SecretError),
    #[error("the key of [memory] embeddings is no plain text; {VARIABLE} or the file {0} holds one")]
    OddKey(Utf8PathBuf),
    #[error("nothing can be sent from here, so memories are found by their words alone")]
    Client(#[source] reqwest::Error),
    #[error("[memory] embeddings {0}, so memories are found by their words alone")]
    Answer(String),
    #[error(transparent)]
    File(#[from] MemoryError),
}

#[derive(Debug)]
pub(super) struct Embedder {
    client: Client,
    of: Embeddings,
    key: Option<HeaderValue>,
}

impl Embedder {
    /// The one that the user's own file names, and why there is none although it does. `variables` says whether those
    /// of the environment count.
    pub(super) fn of(host: &Host, variables: bool) -> (Option<Self>, Option<String>) {
        // A file that cannot be read is reported by the reader of all of it.
        let Some(of) = OwnMemory::read(&host.config_home).embeddings else { return (None, None) };
        match Self::new(host, of, variables) {
            Ok(embedder) => (Some(embedder), None),
            Err(error) => (None, Some(chain(&error))),
        }
    }

    fn new(host: &Host, of: Embeddings, variables: bool) -> Result<Self, EmbedError> {
        let path = host.config_home.join("embeddings-key");
        let named = host.env.iter().rev().filter(|_| variables).find(|(name, _)| name == VARIABLE);
        let said = named.and_then(|(_, value)| value.to_str()).filter(|value| !value.is_empty());
        let key = match said {
            Some(said) => Some(said.to_owned()),
            None => secret(&path).map_err(EmbedError::Key)?,
        };
        let header = |key: String| HeaderValue::from_str(&format!("Bearer {key}"));
        let mut key = key.map(header).transpose().map_err(|_| EmbedError::OddKey(path))?;
        key.iter_mut().for_each(|key| key.set_sensitive(true));
        let client = http::client(format!("refrain/{}", host.version))
            .timeout(PATIENCE)
            .build()
            .map_err(EmbedError::Client)?;
        Ok(Self { client, of, key })
    }

    pub(super) fn model(&self) -> &str {
        &self.of.model
    }

    /// A vector of each text, in their order.
    fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let failed = |error: std::io::Error| EmbedError::Answer(format!("cannot be asked: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let answer = runtime.block_on(self.ask(texts))?;
        let vectors = answer.vectors();
        if vectors.len() != texts.len() || vectors.iter().any(Vec::is_empty) {
            return Err(EmbedError::Answer(format!(
                "made {} vectors of {} texts",
                vectors.len(),
                texts.len()
            )));
        }
        Ok(vectors)
    }

    async fn ask(&self, texts: &[String]) -> Result<EmbeddingResponse, EmbedError> {
        // Its URL may hold secrets.
        let failed = |error: reqwest::Error| {
            EmbedError::Answer(format!("did not answer: {}", chain(&error.without_url())))
        };
        let body = serde_json::json!({ "model": self.of.model, "input": texts }).to_string();
        let mut request = self.client.post(&self.of.url).header(CONTENT_TYPE, "application/json").body(body);
        if let Some(key) = &self.key {
            request = request.header(AUTHORIZATION, key.clone());
        }
        let response = request.send().await.map_err(failed)?;
        if response.status() != StatusCode::OK {
            return Err(EmbedError::Answer(format!("answered {}", response.status().as_u16())));
        }
        let bytes = http::body(response, LARGEST).await.map_err(|error| match error {
            BodyError::TooLong => EmbedError::Answer("answered with more than vectors".to_owned()),
            BodyError::Broken(error) => failed(error),
        })?;
        serde_json::from_slice(&bytes)
            .map_err(|error| EmbedError::Answer(format!("answered with something else: {error}")))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct EmbeddingResponse {
    data: Vec<Datum>,
    embeddings: Vec<Vec<f32>>,
}

#[derive(Debug, Deserialize)]
struct Datum {
    #[serde(default)]
    index: usize,
    embedding: Vec<f32>,
}

impl EmbeddingResponse {
    fn vectors(mut self) -> Vec<Vec<f32>> {
        // They may come in any order; without numbers, in that of the texts.
        self.data.sort_by_key(|datum| datum.index);
        match self.data.is_empty() {
            true => self.embeddings,
            false => self.data.into_iter().map(|datum| datum.embedding).collect(),
        }
    }
}

/// The vector of a goal, and with the same question those of memories that have none of this model yet. None if nothing
/// is remembered: then nothing is sent.
/// Errors: [`EmbedError`]; what has a vector already keeps it.
pub(super) fn catch_up(
    embedder: &Embedder,
    data_home: &Utf8Path,
    goal: &str,
) -> Result<Option<Vec<f32>>, EmbedError> {
    let model = embedder.model();
    let known = memory::look(data_home, |file| Ok((file.is_empty()?, file.without_vector(model, AT_ONCE)?)))?;
    let Some((false, missing)) = known else { return Ok(None) };
    let texts: Vec<String> =
        [fit_to_send(goal)].into_iter().chain(missing.iter().map(|it| it.text.clone())).collect();
    // On a thread of its own: the caller may have a runtime, in which no other can be waited for.
    let made = std::thread::scope(|scope| scope.spawn(|| embedder.embed(&texts)).join());
    let mut vectors =
        made.unwrap_or_else(|_| Err(EmbedError::Answer("cannot be asked".to_owned())))?.into_iter();
    let own = vectors.next();
    memory::look(data_home, |file| {
        let mut both = missing.iter().zip(vectors);
        both.try_for_each(|(it, of)| file.keep_vector(it, Vector { model, of: &of }))
    })?;
    Ok(own)
}

/// The goal without what looks like a secret, and without its tail if it is long.
fn fit_to_send(goal: &str) -> String {
    let lines = goal.lines().filter(|line| secrets::screen(b"text", line.as_bytes(), None).is_none());
    let text = lines.collect::<Vec<_>>().join("\n");
    let text = if text.trim().is_empty() { "nothing".to_owned() } else { text };
    clip(&text, LONGEST).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_kind_of_answer_is_read_in_the_order_of_the_texts() {
        let read = |text: &str| serde_json::from_str::<EmbeddingResponse>(text).unwrap().vectors();
        let openai = r#"{"object":"list","data":[{"index":1,"embedding":[2.0]},{"index":0,"embedding":[1.0]}],"usage":{}}"#;
        assert_eq!(read(openai), [[1.0], [2.0]]);
        assert_eq!(read(r#"{"model":"m","embeddings":[[1.0],[2.0]]}"#), [[1.0], [2.0]]);
        assert!(
            read("{}").is_empty() && serde_json::from_str::<EmbeddingResponse>(r#"{"data": 3}"#).is_err()
        );
    }

    #[test]
    fn a_secret_in_a_goal_is_not_sent() {
        let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
        assert_eq!(fit_to_send(&format!("Log in\nwith {token}\nand look")), "Log in\nand look");
        assert_eq!(fit_to_send(&token), "nothing");
    }
}
