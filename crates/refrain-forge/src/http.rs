//! Shared by all HTTP clients of Refrain: the cryptography provider, no redirects, and limited responses.

use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Response};
use rustls::crypto::ring;

/// Why the body of an answer was not read.
#[derive(Debug)]
pub enum BodyError {
    TooLong,
    Broken(reqwest::Error),
}

/// A client that follows no redirect: a redirect would send a login or a signed text to another host.
pub fn client(user_agent: impl Into<String>) -> ClientBuilder {
    // Fails if another client of this process has installed it: there is only this provider.
    let _ = ring::default_provider().install_default();
    Client::builder().user_agent(user_agent.into()).redirect(Policy::none())
}

/// The body of an answer, of at most `most` bytes.
pub async fn body(mut response: Response, most: usize) -> Result<Vec<u8>, BodyError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(BodyError::Broken)? {
        if body.len() + chunk.len() > most {
            return Err(BodyError::TooLong);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
