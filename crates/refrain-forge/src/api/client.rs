//! Requests to GitHub's API with a token, for hosts without a login of `gh`: one at a time.

use std::error::Error;
use std::ffi::OsString;
use std::future::pending;
use std::os::fd::AsFd;
use std::{fmt, thread};

use refrain_core::text::printable;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION};
use reqwest::{Method, Response, Url};
use serde_json::Value;
use tokio::net::unix::pipe::Receiver;
use tokio::runtime::Builder;

use crate::api::exchange::ForgeResponse;
use crate::api::program::LIMIT;
use crate::error::{Trouble, of_status, told};
use crate::http::{self, BodyError};
use crate::token::{Token, host_of, is_private, variable};
use refrain_proc::tool::Cancel;

/// The longest answer that is read, in bytes.
const LONGEST: usize = 64 << 20;

pub(crate) struct Client {
    host: String,
    token: Token,
    base: String,
    rest: String,
    graphql: String,
    cancel: Option<Cancel>,
}

impl Client {
    /// For `host`, which may receive `token`. The address of its API follows from its name, or from the variables of
    /// GitHub's own runners.
    pub(crate) fn new(
        host: &str,
        token: Token,
        env: &[(OsString, OsString)],
        cancel: Option<&Cancel>,
    ) -> Self {
        let server = variable(env, "GITHUB_SERVER_URL").and_then(host_of);
        let said =
            variable(env, "GITHUB_API_URL").filter(|_| server.as_deref().unwrap_or("github.com") == host);
        let api = match said.filter(|said| is_private(said)) {
            Some(said) => said.trim_end_matches('/').to_owned(),
            None if host == "github.com" => "https://api.github.com".to_owned(),
            None if host.ends_with(".ghe.com") => format!("https://api.{host}"),
            None => format!("https://{host}/api/v3"),
        };
        let at = api.find("://").map_or(0, |at| at + 3);
        let (base, rest) = api.split_at(api[at..].find('/').map_or(api.len(), |slash| at + slash));
        let graphql = format!("{}/graphql", rest.strip_suffix("/v3").unwrap_or(rest));
        let cancel = cancel.cloned();
        Self { host: host.to_owned(), token, base: base.to_owned(), rest: rest.to_owned(), graphql, cancel }
    }

    /// Sends one request.
    /// Errors: [`Trouble`], also if the answer's status is not a success.
    pub(crate) fn ask(
        &self,
        method: &Method,
        endpoint: &str,
        body: Option<&Value>,
    ) -> Result<ForgeResponse, Trouble> {
        let path =
            if endpoint == "graphql" { self.graphql.clone() } else { format!("{}/{endpoint}", self.rest) };
        // The caller may be in a runtime already, in which no other can be started: a thread of its own.
        let answer = thread::scope(|scope| scope.spawn(|| self.ask_alone(method, &path, body)).join());
        let answer = answer.unwrap_or_else(|_| Err(unanswered("the client gave up")))?;
        let said = told(&answer.body, format!("HTTP {}", answer.status).as_bytes());
        match of_status(("gh", &self.host), answer.status, &answer.headers, said) {
            None => Ok(answer),
            Some(Trouble::NotLoggedIn { host, said, .. }) => {
                Err(Trouble::BadToken { from: self.token.from(), host, said })
            }
            Some(other) => Err(other),
        }
    }

    fn ask_alone(&self, method: &Method, path: &str, body: Option<&Value>) -> Result<ForgeResponse, Trouble> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| unanswered(&error.to_string()))?;
        let limit = format!("no answer within {} s", LIMIT.as_secs());
        runtime.block_on(async {
            tokio::select! {
                biased;
                () = stopped(self.cancel.as_ref()) => Err(Trouble::Cancelled),
                answer = tokio::time::timeout(LIMIT, self.send(method, path, body)) => {
                    answer.unwrap_or_else(|_| Err(unanswered(&limit)))
                }
            }
        })
    }

    async fn send(
        &self,
        method: &Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<ForgeResponse, Trouble> {
        let client = http::client("refrain").build().map_err(no_answer)?;
        let bearer = HeaderValue::from_str(&format!("Bearer {}", self.token.expose()));
        let mut bearer =
            bearer.map_err(|_| unanswered("the token has a character that no header may have"))?;
        bearer.set_sensitive(true);
        let url = format!("{}{path}", self.base);
        let mut request = client.request(method.clone(), url).header(AUTHORIZATION, bearer);
        request = request.header(ACCEPT, "application/vnd.github+json");
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
        }
        let mut response = request.send().await.map_err(no_answer)?;
        // Logs are on another host, which must not get the token.
        if let Some(url) = redirection(&response).filter(|_| method == Method::GET) {
            response = client.get(url).send().await.map_err(no_answer)?;
        }
        read(response).await
    }
}

/// The target of a redirect, if it may be requested.
fn redirection(response: &Response) -> Option<Url> {
    let location = response.headers().get(LOCATION).filter(|_| response.status().is_redirection())?;
    let url = response.url().join(location.to_str().ok()?).ok()?;
    is_private(url.as_str()).then_some(url)
}

/// The whole answer, up to [`LONGEST`].
async fn read(response: Response) -> Result<ForgeResponse, Trouble> {
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body = http::body(response, LONGEST).await.map_err(|error| match error {
        BodyError::TooLong => {
            let said = format!("its answer is longer than {} MiB", LONGEST >> 20);
            Trouble::Refused { status: 0, said }
        }
        BodyError::Broken(error) => no_answer(error),
    })?;
    Ok(ForgeResponse { status, headers, body })
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("base", &self.base).field("token", &self.token).finish_non_exhaustive()
    }
}

/// Returns once the request is cancelled.
async fn stopped(cancel: Option<&Cancel>) {
    let own = cancel.map(|cancel| cancel.as_fd().try_clone_to_owned());
    match own.map(|own| Receiver::from_owned_fd(own?)) {
        Some(Ok(watched)) => drop(watched.readable().await),
        // The time limit still applies.
        Some(Err(_)) | None => pending().await,
    }
}

fn unanswered(said: &str) -> Trouble {
    Trouble::Unreachable { said: printable(said).into_owned() }
}

/// The error of a request without a complete answer, with all its causes.
fn no_answer(error: reqwest::Error) -> Trouble {
    let error = error.without_url();
    let (mut said, mut cause) = (error.to_string(), error.source());
    while let Some(deeper) = cause {
        let told = deeper.to_string();
        if !said.contains(&told) {
            said = format!("{said}: {told}");
        }
        cause = deeper.source();
    }
    unanswered(&said)
}
