//! Telling a collector of OpenTelemetry what happens to a loop: an observer on a thread of its own in the runner's process.
//! It reads the journal, sends the spans of an iteration when that is over (OTLP over HTTP, as JSON), and can change nothing.
//! What a collector does not take is kept for the next time, and given up when the loop has stopped.

use std::io;
use std::sync::Arc;
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use refrain_core::Record;
use refrain_core::event::Event;
use refrain_core::trace::{Span, Tracer, otlp};
use refrain_store::journal::Tail;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use tokio::runtime::Builder;

use crate::pulse::Beat;
use crate::redact::Redactor;
use crate::{Host, Runner, chain};

/// How long a collector may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// So many spans are kept for a collector that takes none; of more, the last.
const KEPT: usize = 1000;
/// Where a collector takes spans, below its address.
const PATH: &str = "/v1/traces";

/// Why nothing can be sent.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// What is said of a collector is no URL.
    #[error("{0} is no URL of a collector; accepted is one of http or https, like http://localhost:4318")]
    Url(&'static str),
    /// What is to be sent along is no header.
    #[error("{0} is no list of headers; accepted is NAME=VALUE, with commas between them")]
    Headers(&'static str),
    /// The system has no certificates, say.
    #[error("nothing can be sent from here")]
    Client(#[source] reqwest::Error),
}

/// A collector.
#[derive(Clone, Debug)]
pub struct Telemetry {
    url: Url,
    client: Client,
    version: String,
}

impl Telemetry {
    /// The collector that the variables of OpenTelemetry name, or else the configuration; none where neither does.
    ///
    /// # Errors
    /// [`TelemetryError`] where nothing could be sent there.
    pub fn new(configured: Option<&str>, host: &Host) -> Result<Option<Self>, TelemetryError> {
        let of = |name: &'static str| {
            let set = host.env.iter().rev().find(|(set, _)| set == name)?.1.to_str()?;
            Some((name, set.to_owned())).filter(|(_, set)| !set.is_empty())
        };
        if of("OTEL_SDK_DISABLED").is_some_and(|(_, set)| set.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let below =
            |(name, base): (&'static str, String)| (name, base.trim_end_matches('/').to_owned() + PATH);
        let named = of("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        let named = named.or_else(|| of("OTEL_EXPORTER_OTLP_ENDPOINT").map(below));
        let named = named.or_else(|| configured.map(|base| below(("[telemetry] endpoint", base.to_owned()))));
        let Some((whose, url)) = named else { return Ok(None) };
        let url: Url = url.parse().map_err(|_| TelemetryError::Url(whose))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(TelemetryError::Url(whose));
        }
        let sent = of("OTEL_EXPORTER_OTLP_TRACES_HEADERS").or_else(|| of("OTEL_EXPORTER_OTLP_HEADERS"));
        let headers =
            sent.map(|(name, text)| headers(&text).ok_or(TelemetryError::Headers(name))).transpose()?;
        // Whoever was first: there is only this one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .user_agent(format!("refrain/{}", host.version))
            .default_headers(headers.unwrap_or_default())
            .redirect(Policy::none())
            .build()
            .map_err(TelemetryError::Client)?;
        Ok(Some(Self { url, client, version: host.version.clone() }))
    }

    async fn send(&self, spans: &[Span]) -> Result<(), String> {
        let body = otlp(spans, &self.version);
        let request = self.client.post(self.url.clone()).timeout(PATIENCE);
        let answer = request.header(CONTENT_TYPE, "application/json").body(body).send().await;
        // The URL may hold what is nobody's business.
        let status = answer.map_err(|error| chain(&error.without_url()))?.status();
        if status.is_success() { Ok(()) } else { Err(format!("it answered {}", status.as_u16())) }
    }
}

/// `name=value`, with commas between them, as the variables of OpenTelemetry have it.
fn headers(text: &str) -> Option<HeaderMap> {
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    let header = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        let mut value = HeaderValue::from_str(&decoded(value.trim())?).ok()?;
        value.set_sensitive(true);
        Some((HeaderName::try_from(name.trim()).ok()?, value))
    };
    pairs.map(header).collect()
}

/// The text with `%20` and the like as what they stand for.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let hex = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&hex).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Somebody who tells a collector of a loop, as long as that is driven here.
#[derive(Debug)]
pub struct Exporter(JoinHandle<Option<String>>);

impl Exporter {
    /// Waits until all is sent, or given up, and answers with why.
    #[must_use]
    pub fn finish(self) -> Option<String> {
        // If it panicked, nothing more is sent; the loop is what it is.
        self.0.join().unwrap_or(None)
    }
}

impl Runner {
    /// Has a collector told what happens to the loop from here on.
    ///
    /// # Errors
    /// Where nothing can be sent from here.
    pub fn export(&self, telemetry: Telemetry) -> io::Result<Exporter> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let redactor = Redactor::new(&self.journal.state().spec, []);
        let (pulse, past, mut tail) = (Arc::clone(&self.pulse), self.past, Tail::of(&self.journal));
        Ok(Exporter(spawn(move || {
            let mut tracer: Option<Tracer> = None;
            let (mut owed, mut trouble) = (Vec::new(), None);
            loop {
                let beat = pulse.beat();
                // What cannot be understood, the runner itself says.
                let records = tail.next(beat.journal).unwrap_or_default();
                let mut is_due = beat.over;
                for record in &records {
                    // What a gate printed leaves the machine here.
                    let clean = |span: Span| Span { error: span.error.map(|it| redactor.clean(&it)), ..span };
                    let spans: Vec<_> = see(&mut tracer, record).into_iter().map(clean).collect();
                    if record.seq > past {
                        owed.extend(spans);
                        is_due |= matches!(record.event, Event::IterationBegun { .. } | Event::LoopEnded(_));
                    }
                }
                if is_due && !owed.is_empty() {
                    trouble = runtime.block_on(telemetry.send(&owed)).err();
                    let kept = if trouble.is_some() { owed.len().min(KEPT) } else { 0 };
                    owed.drain(..owed.len() - kept);
                }
                if beat.over {
                    return trouble;
                }
                let journal = |seen: Beat| seen.journal;
                let mut seen = beat;
                while journal(seen) == journal(beat) && !seen.over {
                    // What is printed is nothing to it.
                    seen = pulse.wait(seen, None);
                }
            }
        })))
    }
}

fn see(tracer: &mut Option<Tracer>, record: &Record) -> Vec<Span> {
    match tracer {
        None => {
            *tracer = Tracer::begin(record).ok();
            Vec::new()
        }
        Some(tracer) => tracer.see(record).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(env: &[(&str, &str)]) -> Host {
        Host {
            program: "refrain".into(),
            env: env.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            data_home: "/nowhere".into(),
            state_home: "/nowhere".into(),
            config_home: "/nowhere".into(),
            version: "0.0.0".into(),
        }
    }

    fn url(configured: Option<&str>, env: &[(&str, &str)]) -> Option<String> {
        Telemetry::new(configured, &host(env)).unwrap().map(|telemetry| telemetry.url.to_string())
    }

    #[test]
    fn a_collector_is_named_as_opentelemetry_has_it() {
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/");
        let traces = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://other/in");
        assert_eq!(url(None, &[]), None);
        assert_eq!(url(None, &[base]).as_deref(), Some("http://collector:4318/v1/traces"));
        assert_eq!(url(None, &[base, traces]).as_deref(), Some("https://other/in"));
        assert_eq!(url(Some("http://own"), &[]).as_deref(), Some("http://own/v1/traces"));
        assert_eq!(url(Some("http://own"), &[base]).as_deref(), Some("http://collector:4318/v1/traces"));
        assert_eq!(url(Some("http://own"), &[base, ("OTEL_SDK_DISABLED", "true")]), None);
        for bad in ["collector:4318", "ftp://collector"] {
            assert!(Telemetry::new(Some(bad), &host(&[])).is_err(), "{bad}");
        }
    }

    #[test]
    fn headers_are_what_their_variable_says() {
        let sent = headers("authorization=Bearer%20abc, x-team = a ,").unwrap();
        assert_eq!(
            (sent["authorization"].as_bytes(), sent["x-team"].as_bytes()),
            (&b"Bearer abc"[..], &b"a"[..])
        );
        for bad in ["no pair", "a b=c", "a=%0a", "a=%zz", "a=%"] {
            assert_eq!(headers(bad), None, "{bad}");
        }
    }
}
