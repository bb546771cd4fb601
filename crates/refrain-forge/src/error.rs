//! The errors of requests to a forge, distinguished by the exit code of its program and by HTTP status.

use std::time::Duration;

use refrain_core::text::{clip, printable};
use refrain_proc::tool::ToolError;
use reqwest::header::HeaderMap;

/// How much of a forge's message is kept, in bytes.
const SAID: usize = 2 << 10;

/// How long to wait if a forge reports a rate limit without a time: GitHub's documented minimum.
pub(super) const SECONDARY: Duration = Duration::from_secs(60);

#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// Its program is not installed.
    #[error(
        "{program} is not installed, which talks to {host}; install it and run `{program} auth login`{}",
        or_token(program)
    )]
    NoProgram {
        /// `gh` or `glab`.
        program: &'static str,
        host: String,
    },
    /// The user is not logged in, or no longer.
    #[error(
        "{program} is not logged in at {host}; run `{program} auth login --hostname {host}`{}: {said}",
        or_token(program)
    )]
    NotLoggedIn {
        /// `gh` or `glab`.
        program: &'static str,
        host: String,
        /// The message, printable.
        said: String,
    },
    #[error("{host} does not take the token of {from}; set one that is valid: {said}")]
    BadToken { from: &'static str, host: String, said: String },
    #[error("the login at the forge may not do this: {said}")]
    NoPermission { said: String },
    #[error("the forge does not have it, or does not show it to this login: {said}")]
    NotFound { said: String },
    #[error("the forge wants to be asked less often: {said}")]
    RateLimited { until: RetryTime, said: String },
    #[error("the forge cannot be reached: {said}")]
    Unreachable { said: String },
    #[error("the forge refused: {said}")]
    Refused {
        /// The HTTP status; 0 if the program reported it.
        status: u16,
        said: String,
    },
    #[error("the forge answered something that cannot be understood, to {asked}: {source}")]
    Answer { asked: String, source: serde_json::Error },
    #[error("asking the forge was stopped")]
    Cancelled,
    /// A system error while the program ran.
    #[error(transparent)]
    Tool(ToolError),
}

/// When a request to a forge may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryTime {
    /// At this time, in seconds since 1970.
    At(u64),
    After(Duration),
}

/// The alternative to a login of GitHub's program.
fn or_token(program: &str) -> &'static str {
    if program == "gh" { ", or set GH_TOKEN" } else { "" }
}

/// The meaning of an HTTP status; none if it is a success.
pub(super) fn of_status(
    (program, host): (&'static str, &str),
    status: u16,
    headers: &HeaderMap,
    said: String,
) -> Option<Trouble> {
    Some(match status {
        0..400 => return None,
        401 => Trouble::NotLoggedIn { program, host: host.to_owned(), said },
        403 | 429 => match limit(status, headers, &said) {
            Some(until) => Trouble::RateLimited { until, said },
            None => Trouble::NoPermission { said },
        },
        404 | 410 => Trouble::NotFound { said },
        408 | 500.. => Trouble::Unreachable { said },
        400.. => Trouble::Refused { status, said },
    })
}

/// When to retry after a rate limit; none if the refusal has another cause. GitHub has an hourly limit, which it
/// counts down, and others that it reports only when they are reached; GitLab answers 429.
fn limit(status: u16, headers: &HeaderMap, said: &str) -> Option<RetryTime> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<u64>().ok();
    if let Some(seconds) = number("retry-after") {
        return Some(RetryTime::After(Duration::from_secs(seconds)));
    }
    if number("x-ratelimit-remaining") == Some(0) || (status == 429 && number("ratelimit-reset").is_some()) {
        let reset = number("x-ratelimit-reset").or_else(|| number("ratelimit-reset"));
        return Some(reset.map_or(RetryTime::After(SECONDARY), RetryTime::At));
    }
    let is_told = status == 429 || said.to_lowercase().contains("rate limit");
    is_told.then_some(RetryTime::After(SECONDARY))
}

/// The meaning of a program's failure without an HTTP response, from its exit code and its output.
pub(super) fn of_program(
    (program, host): (&'static str, &str),
    exit_code: Option<i32>,
    said: String,
) -> Trouble {
    // gh exits with 4 if it needs a login (gh help exit-codes).
    const LOGIN: &[&str] = &["auth login", "not logged in", "authentication required", "401 unauthorized"];
    const NETWORK: &[&str] = &[
        "error connecting",
        "dial tcp",
        "no such host",
        "connection re",
        "timeout",
        "timed out",
        "eof",
        "tls",
        "network is unreachable",
        "no route to host",
        "could not resolve",
    ];
    let words = said.to_lowercase();
    let has = |known: &[&str]| known.iter().any(|known| words.contains(known));
    if (program == "gh" && exit_code == Some(4)) || has(LOGIN) {
        Trouble::NotLoggedIn { program, host: host.to_owned(), said }
    } else if has(NETWORK) {
        Trouble::Unreachable { said }
    } else {
        let said = match exit_code {
            _ if !said.is_empty() => said,
            Some(code) => format!("{program} ended with exit code {code} and printed nothing"),
            None => format!("{program} was ended by a signal and printed nothing"),
        };
        Trouble::Refused { status: 0, said }
    }
}

/// The error message in a forge's answer, made printable: the `message` of GitHub or GitLab, followed by the
/// `errors`.
pub(super) fn told(body: &[u8], complaint: &[u8]) -> String {
    let json: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Null => String::new(),
        other => other.to_string(),
    };
    let said = [text(&json["message"]), text(&json["error"])].into_iter().find(|text| !text.is_empty());
    let errors = json["errors"].as_array().into_iter().flatten();
    let errors = errors.map(|error| text(if error["message"].is_null() { error } else { &error["message"] }));
    let said: Vec<String> = said.into_iter().chain(errors).collect();
    let text = match said.is_empty() {
        true => String::from_utf8_lossy(complaint).into_owned(),
        false => said.join("; "),
    };
    clip(&printable(text.trim()), SAID).into_owned()
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    fn kind(trouble: &Trouble) -> String {
        match trouble {
            Trouble::NoProgram { .. } => "no program".to_owned(),
            Trouble::NotLoggedIn { .. } => "not logged in".to_owned(),
            Trouble::BadToken { .. } => "bad token".to_owned(),
            Trouble::NoPermission { .. } => "no permission".to_owned(),
            Trouble::NotFound { .. } => "not found".to_owned(),
            Trouble::RateLimited { until: RetryTime::At(at), .. } => format!("limited until {at}"),
            Trouble::RateLimited { until: RetryTime::After(after), .. } => format!("limited for {after:?}"),
            Trouble::Unreachable { .. } => "unreachable".to_owned(),
            Trouble::Refused { status, .. } => format!("refused {status}"),
            Trouble::Answer { .. } => "answer".to_owned(),
            Trouble::Cancelled => "cancelled".to_owned(),
            Trouble::Tool(_) => "tool".to_owned(),
        }
    }

    #[test]
    fn each_http_status_maps_to_an_error() {
        const NONE: &[(&str, &str)] = &[];
        for (status, headers, said, expected) in [
            (401, NONE, "Bad credentials", "not logged in"),
            (403, NONE, "Resource not accessible by personal access token", "no permission"),
            (
                403,
                &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1790000000")],
                "API rate limit exceeded",
                "limited until 1790000000",
            ),
            (
                403,
                &[
                    ("x-ratelimit-remaining", "4000"),
                    ("x-ratelimit-reset", "1790000000"),
                    ("retry-after", "30"),
                ],
                "secondary rate limit",
                "limited for 30s",
            ),
            (
                403,
                &[("x-ratelimit-remaining", "4000")],
                "You have exceeded a secondary rate limit.",
                "limited for 60s",
            ),
            (
                403,
                &[("x-ratelimit-remaining", "4000"), ("x-ratelimit-reset", "1790000000")],
                "Must have admin rights",
                "no permission",
            ),
            (429, &[("ratelimit-reset", "1790000000")], "Too many requests", "limited until 1790000000"),
            (429, NONE, "", "limited for 60s"),
            (404, NONE, "Not Found", "not found"),
            (405, NONE, "Pull Request is not mergeable", "refused 405"),
            (409, NONE, "Head branch was modified.", "refused 409"),
            (422, NONE, "Validation Failed", "refused 422"),
            (502, NONE, "", "unreachable"),
        ] {
            let pair = |(name, value): &(&'static str, &'static str)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            };
            let headers = headers.iter().map(pair).collect();
            let trouble = of_status(("gh", "github.com"), status, &headers, said.to_owned()).unwrap();
            assert_eq!(kind(&trouble), expected, "{status} {said}");
        }
        assert!(of_status(("gh", "github.com"), 204, &HeaderMap::new(), String::new()).is_none());
    }

    #[test]
    fn a_program_without_an_answer_says_why() {
        for (code, said, expected) in [
            (4, "To get started with GitHub CLI, please run:  gh auth login", "not logged in"),
            (1, "error connecting to api.github.com", "unreachable"),
            (
                1,
                "Get \"https://api.github.com/\": dial tcp: lookup api.github.com: no such host",
                "unreachable",
            ),
            (1, "Post \"https://gitlab.com/api/v4/\": unexpected EOF", "unreachable"),
            (1, "none of the git remotes configured", "refused 0"),
        ] {
            assert_eq!(
                kind(&of_program(("gh", "github.com"), Some(code), said.to_owned())),
                expected,
                "{said}"
            );
        }
    }

    #[test]
    fn a_program_that_says_nothing_is_named_with_its_exit_code() {
        let silent = |code| of_program(("gh", "github.com"), code, String::new()).to_string();
        assert_eq!(silent(Some(1)), "the forge refused: gh ended with exit code 1 and printed nothing");
        assert_eq!(silent(None), "the forge refused: gh was ended by a signal and printed nothing");
    }

    #[test]
    fn the_message_of_a_forge_is_found_in_its_response() {
        for (body, complaint, expected) in [
            (
                r#"{"message":"Validation Failed","errors":[{"message":"A pull request already exists"},"and more"]}"#,
                "",
                "Validation Failed; A pull request already exists; and more",
            ),
            (r#"{"message":{"base":["is taken"]}}"#, "", r#"{"base":["is taken"]}"#),
            (r#"{"error":"insufficient_scope"}"#, "", "insufficient_scope"),
            ("<html>", "gh: HTTP 502", "gh: HTTP 502"),
        ] {
            assert_eq!(told(body.as_bytes(), complaint.as_bytes()), expected);
        }
    }
}
