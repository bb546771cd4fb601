//! GitHub asked by ourselves, with a token, where `gh` has no login: octocrab, one question at a time.

use std::error::Error;
use std::ffi::OsString;
use std::fmt;
use std::future::pending;
use std::os::fd::AsFd;
use std::thread;

use octocrab::Octocrab;
use refrain_core::text::printable;
use serde_json::Value;
use tokio::net::unix::pipe::Receiver;
use tokio::runtime::Builder;

use super::api::{Answer, Method};
use super::program::LIMIT;
use super::token::{Token, host_of, is_private, variable};
use super::trouble::{Trouble, of_status, told};
use crate::Cancel;

/// The longest answer that is read, in bytes.
const LONGEST: u64 = 64 << 20;

/// Who asks, and where.
pub(super) struct Client {
    host: String,
    token: Token,
    /// Scheme and authority of the API.
    base: String,
    /// What is before each endpoint.
    rest: String,
    graphql: String,
    cancel: Option<Cancel>,
}

impl Client {
    /// For `host`, which may be shown `token`. Where its API lies follows from its name, or is said as GitHub's own runners
    /// say it.
    pub(super) fn new(
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

    /// Asks once.
    ///
    /// # Errors
    /// [`Trouble`], also where the answer's status is none of success.
    pub(super) fn ask(
        &self,
        method: Method,
        endpoint: &str,
        body: Option<&Value>,
    ) -> Result<Answer, Trouble> {
        let path =
            if endpoint == "graphql" { self.graphql.clone() } else { format!("{}/{endpoint}", self.rest) };
        // Whoever asks may be in a runtime already, which does not let another begin.
        let answer = thread::scope(|scope| scope.spawn(|| self.ask_alone(method, &path, body)).join());
        let answer = answer.unwrap_or_else(|_| Err(unreachable("the client gave up")))?;
        let said = told(&answer.body, format!("HTTP {}", answer.status).as_bytes());
        match of_status(("gh", &self.host), answer.status, |name| answer.header(name), said) {
            None => Ok(answer),
            Some(Trouble::NotLoggedIn { host, said, .. }) => {
                Err(Trouble::BadToken { from: self.token.from(), host, said })
            }
            Some(other) => Err(other),
        }
    }

    fn ask_alone(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Answer, Trouble> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| unreachable(&error.to_string()))?;
        let limit = format!("no answer within {} s", LIMIT.as_secs());
        runtime.block_on(async {
            tokio::select! {
                biased;
                () = stopped(self.cancel.as_ref()) => Err(Trouble::Cancelled),
                answer = tokio::time::timeout(LIMIT, self.talk(method, path, body)) => {
                    answer.unwrap_or_else(|_| Err(unreachable(&limit)))
                }
            }
        })
    }

    async fn talk(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Answer, Trouble> {
        let builder = Octocrab::builder().personal_token(self.token.expose());
        let crab = builder.base_uri(self.base.as_str()).and_then(|it| it.build()).map_err(|it| lost(&it))?;
        let asked = match method {
            Method::Get => crab._get(path).await,
            Method::Post => crab._post(path, body).await,
            Method::Patch => crab._patch(path, body).await,
            Method::Put => crab._put(path, body).await,
            Method::Delete => crab._delete(path, body).await,
        };
        let mut response = asked.map_err(|error| lost(&error))?;
        // Logs lie elsewhere, which is told no token: octocrab has it for its own host alone.
        let elsewhere = response.headers().get("location").and_then(|it| it.to_str().ok()).map(str::to_owned);
        if let Some(elsewhere) = elsewhere
            && method == Method::Get
            && response.status().is_redirection()
            && is_private(&elsewhere)
        {
            response = crab._get(elsewhere).await.map_err(|error| lost(&error))?;
        }
        let status = response.status().as_u16();
        let mut headers = Vec::new();
        for (name, value) in response.headers() {
            headers.extend(value.to_str().ok().map(|value| (name.as_str().to_owned(), value.to_owned())));
        }
        let mut answer = Answer { status, headers, body: Vec::new() };
        let length = answer.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        if length > LONGEST {
            let said = format!("its answer is longer than {} MiB", LONGEST >> 20);
            return Err(Trouble::Refused { status: 0, said });
        }
        answer.body = match crab.body_to_string(response).await {
            Ok(body) => body.into_bytes(),
            // What a job printed may be anything.
            Err(octocrab::Error::InvalidUtf8 { source, .. }) => source.into_bytes(),
            Err(error) => return Err(lost(&error)),
        };
        Ok(answer)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("base", &self.base).field("token", &self.token).finish_non_exhaustive()
    }
}

/// Returns once somebody says stop.
async fn stopped(cancel: Option<&Cancel>) {
    let own = cancel.map(|cancel| cancel.as_fd().try_clone_to_owned());
    match own.map(|own| Receiver::from_owned_fd(own?)) {
        Some(Ok(watched)) => drop(watched.readable().await),
        // The limit is left.
        Some(Err(_)) | None => pending().await,
    }
}

fn unreachable(said: &str) -> Trouble {
    Trouble::Unreachable { said: printable(said).into_owned() }
}

/// A question that got no whole answer.
fn lost(error: &octocrab::Error) -> Trouble {
    let (mut said, mut cause) = (error.to_string(), error.source());
    while let Some(deeper) = cause {
        let told = deeper.to_string();
        if !said.contains(&told) {
            said = format!("{said}: {told}");
        }
        cause = deeper.source();
    }
    unreachable(&said)
}
