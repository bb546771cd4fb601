//! The error responses of each protocol. The words are those by which programs tell errors apart.

use std::time::SystemTime;

use serde_json::{Value, json};

use super::http::Whole;
use super::request::Protocol;
use super::script::Refusal;

pub(super) fn answer(protocol: Protocol, refusal: &Refusal) -> Whole {
    let row = row(refusal);
    match protocol {
        Protocol::Anthropic | Protocol::Other => anthropic(&row, refusal),
        Protocol::Responses | Protocol::Chat => openai(&row, refusal),
        Protocol::Gemini | Protocol::CodeAssist => gemini(&row, refusal),
    }
}

/// One kind of error in the three dialects: status, word, sentence.
struct Row {
    anthropic: (u16, &'static str, &'static str),
    openai: (u16, &'static str, &'static str),
    gemini: (u16, &'static str, &'static str),
}

fn row(refusal: &Refusal) -> Row {
    match refusal {
        Refusal::RateLimit { .. } => Row {
            anthropic: (429, "rate_limit_error", "This request would exceed your rate limit."),
            openai: (429, "rate_limit_exceeded", "Rate limit reached for requests."),
            gemini: (429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
        },
        Refusal::UsageLimit { .. } => Row {
            anthropic: (429, "rate_limit_error", "You have hit your usage limit."),
            openai: (429, "usage_limit_reached", "The usage limit has been reached"),
            gemini: (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota."),
        },
        Refusal::Overloaded => Row {
            anthropic: (529, "overloaded_error", "Overloaded"),
            openai: (503, "server_is_overloaded", "Overloaded"),
            gemini: (503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
        },
        Refusal::ServerError => Row {
            anthropic: (500, "api_error", "Internal server error"),
            openai: (500, "server_error", "Internal server error"),
            gemini: (500, "INTERNAL", "Internal server error"),
        },
        Refusal::Auth => Row {
            anthropic: (401, "authentication_error", "invalid x-api-key"),
            openai: (401, "invalid_api_key", "Incorrect API key provided."),
            gemini: (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
        },
        Refusal::Forbidden => Row {
            anthropic: (403, "permission_error", "Forbidden"),
            openai: (403, "permission_denied", "Forbidden"),
            gemini: (403, "PERMISSION_DENIED", "Forbidden"),
        },
        Refusal::NoSuchModel => Row {
            anthropic: (404, "not_found_error", "model: no such model"),
            openai: (404, "model_not_found", "no such model"),
            gemini: (404, "NOT_FOUND", "no such model"),
        },
        Refusal::ContextOverflow => Row {
            anthropic: (400, "invalid_request_error", "prompt is too long: 215300 tokens > 200000 maximum"),
            openai: (
                400,
                "context_length_exceeded",
                "Your input exceeds the context window of this model. Please adjust your input and try again.",
            ),
            gemini: (
                400,
                "INVALID_ARGUMENT",
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            ),
        },
        Refusal::NoCredit => Row {
            anthropic: (400, "invalid_request_error", "Your credit balance is too low"),
            openai: (429, "insufficient_quota", "You exceeded your current quota."),
            gemini: (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota."),
        },
    }
}

fn anthropic(row: &Row, refusal: &Refusal) -> Whole {
    let (status, kind, message) = row.anthropic;
    let mut headers = retry_after(refusal);
    if let Refusal::UsageLimit { resets_in } = refusal {
        let reset = (now() + resets_in).to_string();
        headers.extend([
            ("anthropic-ratelimit-unified-status", "rejected".to_owned()),
            ("anthropic-ratelimit-unified-reset", reset.clone()),
            ("anthropic-ratelimit-unified-representative-claim", "five_hour".to_owned()),
            ("anthropic-ratelimit-unified-5h-status", "rejected".to_owned()),
            ("anthropic-ratelimit-unified-5h-reset", reset),
            ("anthropic-ratelimit-unified-5h-utilization", "1.0".to_owned()),
            ("anthropic-ratelimit-unified-overage-status", "rejected".to_owned()),
        ]);
    }
    let body = json!({ "type": "error", "error": { "type": kind, "message": message } });
    Whole { status, headers, body }
}

fn openai(row: &Row, refusal: &Refusal) -> Whole {
    let (status, kind, message) = row.openai;
    let mut error = json!({ "message": message, "type": kind, "param": null, "code": kind });
    if let Refusal::UsageLimit { resets_in } = refusal {
        error["plan_type"] = "pro".into();
        error["resets_at"] = (now() + resets_in).into();
        error["resets_in_seconds"] = (*resets_in).into();
    }
    Whole { status, headers: retry_after(refusal), body: json!({ "error": error }) }
}

fn gemini(row: &Row, refusal: &Refusal) -> Whole {
    let (status, kind, message) = row.gemini;
    let detail = |name: &str, rest: Value| {
        let mut detail = rest;
        detail["@type"] = format!("type.googleapis.com/google.rpc.{name}").into();
        detail
    };
    let details = match refusal {
        Refusal::UsageLimit { .. } => {
            let quota = json!({ "quotaId": "GenerateRequestsPerDayPerProjectPerModel" });
            vec![detail("QuotaFailure", json!({ "violations": [quota] }))]
        }
        Refusal::RateLimit { retry_after } => {
            vec![detail("RetryInfo", json!({ "retryDelay": format!("{retry_after}s") }))]
        }
        Refusal::Auth => vec![detail("ErrorInfo", json!({ "reason": "API_KEY_INVALID" }))],
        Refusal::Overloaded
        | Refusal::ServerError
        | Refusal::Forbidden
        | Refusal::NoSuchModel
        | Refusal::ContextOverflow
        | Refusal::NoCredit => Vec::new(),
    };
    let error = json!({ "code": status, "message": message, "status": kind, "details": details });
    Whole { status, headers: retry_after(refusal), body: json!({ "error": error }) }
}

fn retry_after(refusal: &Refusal) -> Vec<(&'static str, String)> {
    match refusal {
        Refusal::RateLimit { retry_after } => vec![("retry-after", retry_after.to_string())],
        _ => Vec::new(),
    }
}

/// Seconds since 1970.
#[expect(clippy::disallowed_methods, reason = "programs compare the time of a reset with their own clock")]
fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
