//! Sends spans and metrics of loops and plans to an OpenTelemetry collector (OTLP over HTTP, as JSON), as the variables
//! of OpenTelemetry say. [`exporter`] decides when.

mod exporter;
mod runners;
mod session_export;

use std::time::Duration;

use refrain_core::view::trace::{Parent, Resource, TraceId};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};

use crate::{Host, chain, http};

pub use exporter::Exporter;
pub(crate) use exporter::TaskExport;
pub(crate) use session_export::tell_of_session;

/// How long a collector may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    #[error("{0} is no URL of a collector; accepted: one of http or https, like http://localhost:4318")]
    Url(&'static str),
    #[error("{0} is no list of headers; accepted: NAME=VALUE, with commas between them")]
    Headers(&'static str),
    #[error("nothing can be sent from here")]
    Client(#[source] reqwest::Error),
}

/// A kind of what is sent, and the variables that speak of it alone.
struct Signal {
    path: &'static str,
    exporter: &'static str,
    endpoint: &'static str,
    headers: &'static str,
    protocol: &'static str,
}

const TRACES: Signal = Signal {
    path: "/v1/traces",
    exporter: "OTEL_TRACES_EXPORTER",
    endpoint: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    headers: "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    protocol: "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
};
const METRICS: Signal = Signal {
    path: "/v1/metrics",
    exporter: "OTEL_METRICS_EXPORTER",
    endpoint: "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
    headers: "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
    protocol: "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL",
};
/// The variable that holds for all kinds without their own.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";

#[derive(Clone, Debug)]
pub struct Telemetry {
    traces: Option<Target>,
    metrics: Option<Target>,
    client: Client,
    resource: Resource,
    notes: Vec<String>,
}

/// Where one kind is posted to, and with which headers.
#[derive(Clone, Debug)]
struct Target {
    url: Url,
    headers: HeaderMap,
}

#[derive(Debug)]
struct ExportRefusal {
    why: String,
    how: Refusal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    ForNow,
    /// It may have been taken all the same: there was no answer.
    Unanswered,
    /// It is too much at once.
    TooLarge,
    /// It will never be accepted.
    ForGood,
}

impl Refusal {
    /// As OTLP over HTTP has it: only these four say that it is to be tried again.
    const fn of(status: u16) -> Self {
        match status {
            429 | 502 | 503 | 504 => Self::ForNow,
            413 => Self::TooLarge,
            _ => Self::ForGood,
        }
    }
}

/// The variables of OpenTelemetry that are set here; an empty one is as good as none.
struct Variables<'a>(&'a Host);

impl Variables<'_> {
    fn get(&self, name: &'static str) -> Option<(&'static str, String)> {
        let set = self.0.env.iter().rev().find(|(set, _)| set == name)?.1.to_str()?;
        Some((name, set.to_owned())).filter(|(_, set)| !set.is_empty())
    }

    fn is_disabled(&self) -> bool {
        self.get("OTEL_SDK_DISABLED").is_some_and(|(_, set)| set.eq_ignore_ascii_case("true"))
    }

    /// The URL a kind is posted to; none if no collector is named, or another exporter is wanted for it.
    fn target(&self, signal: &Signal, configured: Option<&str>) -> Result<Option<Target>, TelemetryError> {
        let is_elsewhere = |said: &str| !said.split(',').any(|exporter| exporter.trim() == "otlp");
        if self.get(signal.exporter).is_some_and(|(_, said)| is_elsewhere(&said)) {
            return Ok(None);
        }
        let below = |(name, base): (&'static str, String)| {
            (name, base.trim_end_matches('/').to_owned() + signal.path)
        };
        let named = self.get(signal.endpoint).or_else(|| self.get(ENDPOINT).map(below));
        let named = named.or_else(|| configured.map(|base| below(("[telemetry] endpoint", base.to_owned()))));
        let Some((whose, url)) = named else { return Ok(None) };
        let url: Url = url.parse().map_err(|_| TelemetryError::Url(whose))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(TelemetryError::Url(whose));
        }
        let sent = self.get(signal.headers).or_else(|| self.get(HEADERS));
        let headers =
            sent.map(|(name, text)| headers(&text).ok_or(TelemetryError::Headers(name))).transpose()?;
        Ok(Some(Target { url, headers: headers.unwrap_or_default() }))
    }

    /// The attributes of the sender, and what is odd about them.
    fn resource(&self) -> (Vec<(String, String)>, Option<String>) {
        let (mut attributes, mut odd) = (Vec::new(), None);
        if let Some((name, text)) = self.get("OTEL_RESOURCE_ATTRIBUTES") {
            match pairs(&text) {
                Some(pairs) => attributes = pairs,
                None => {
                    odd = Some(format!(
                        "{name} is no list of NAME=VALUE with commas between them; it is omitted"
                    ))
                }
            }
        }
        attributes.extend(self.get("OTEL_SERVICE_NAME").map(|(_, said)| ("service.name".to_owned(), said)));
        (attributes, odd)
    }
}

impl Host {
    /// The span that the parent process works in (`TRACEPARENT`): what is started here is a part of that.
    pub(crate) fn trace(&self) -> Option<Parent> {
        Variables(self).get("TRACEPARENT")?.1.parse().ok()
    }
}

impl Telemetry {
    /// Whether a collector is named, even with an unusable value.
    pub(crate) fn is_wanted(configured: Option<&str>, host: &Host) -> bool {
        let variables = Variables(host);
        let named = [TRACES.endpoint, METRICS.endpoint, ENDPOINT];
        let is_named = configured.is_some() || named.into_iter().any(|name| variables.get(name).is_some());
        is_named && !variables.is_disabled()
    }

    /// The collector that the variables of OpenTelemetry name, or else the configuration; none if neither does.
    pub fn new(configured: Option<&str>, host: &Host) -> Result<Option<Self>, TelemetryError> {
        let variables = Variables(host);
        if variables.is_disabled() {
            return Ok(None);
        }
        let traces = variables.target(&TRACES, configured)?;
        let metrics = variables.target(&METRICS, configured)?;
        let mut notes = Vec::new();
        for (signal, target) in [(&TRACES, &traces), (&METRICS, &metrics)] {
            let protocol = variables.get(signal.protocol).or_else(|| variables.get(PROTOCOL));
            if let Some((name, said)) = protocol.filter(|(_, said)| target.is_some() && said != "http/json") {
                notes.push(format!("{name} says {said:?}; what is sent is http/json all the same"));
            }
        }
        if traces.is_none() && metrics.is_none() {
            return Ok(None);
        }
        let (attributes, odd) = variables.resource();
        notes.extend(odd);
        notes.dedup();
        let client =
            http::client(format!("refrain/{}", host.version)).build().map_err(TelemetryError::Client)?;
        let resource = Resource { version: host.version.clone(), attributes };
        Ok(Some(Self { traces, metrics, client, resource, notes }))
    }

    /// Oddities of the configuration, and what is done instead.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The resource of this name: each loop has another one, as none of them knows what the others count.
    fn resource(&self, own: TraceId) -> Resource {
        let mut resource = self.resource.clone();
        resource.attributes.insert(0, ("service.instance.id".to_owned(), own.to_string()));
        resource
    }

    async fn send(&self, target: &Target, body: String) -> Result<(), ExportRefusal> {
        let request = self.client.post(target.url.clone()).timeout(PATIENCE).headers(target.headers.clone());
        let answer = request.header(CONTENT_TYPE, "application/json").body(body).send().await;
        // The URL may hold secrets.
        let answer = answer.map_err(|error| ExportRefusal {
            how: if error.is_connect() || error.is_builder() { Refusal::ForNow } else { Refusal::Unanswered },
            why: chain(&error.without_url()),
        })?;
        let status = answer.status();
        let code = status.as_u16();
        let refused = || ExportRefusal { why: format!("it answered {code}"), how: Refusal::of(code) };
        if status.is_success() { Ok(()) } else { Err(refused()) }
    }
}

/// `name=value`, with commas between them, as the variables of OpenTelemetry have it.
fn pairs(text: &str) -> Option<Vec<(String, String)>> {
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        let name = name.trim();
        (!name.is_empty()).then_some((name.to_owned(), decoded(value.trim())?))
    };
    pairs.map(pair).collect()
}

fn headers(text: &str) -> Option<HeaderMap> {
    let header = |(name, value): (String, String)| {
        let mut value = HeaderValue::from_str(&value).ok()?;
        value.set_sensitive(true);
        Some((HeaderName::try_from(name).ok()?, value))
    };
    pairs(text)?.into_iter().map(header).collect()
}

/// The text with `%20` and the like decoded.
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

    fn of(configured: Option<&str>, env: &[(&str, &str)]) -> Option<Telemetry> {
        Telemetry::new(configured, &host(env)).unwrap()
    }

    fn url(configured: Option<&str>, env: &[(&str, &str)]) -> Option<String> {
        of(configured, env).and_then(|telemetry| Some(telemetry.traces?.url.to_string()))
    }

    #[test]
    fn metrics_go_where_they_are_said_to_go() {
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
        let own = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "https://other/m");
        let metrics = |env: &[(&str, &str)]| Some(of(None, env)?.metrics?.url.to_string());
        assert_eq!(metrics(&[base]).as_deref(), Some("http://collector:4318/v1/metrics"));
        assert_eq!(metrics(&[base, own]).as_deref(), Some("https://other/m"));
        assert_eq!((metrics(&[own]).is_some(), url(None, &[own])), (true, None));
        assert_eq!(metrics(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://a")]), None);
        for elsewhere in ["none", "console", "prometheus,console"] {
            assert_eq!(metrics(&[base, ("OTEL_METRICS_EXPORTER", elsewhere)]), None, "{elsewhere}");
        }
        assert!(metrics(&[base, ("OTEL_METRICS_EXPORTER", "console, otlp")]).is_some());
        assert_eq!(url(None, &[base, ("OTEL_TRACES_EXPORTER", "none")]), None);
        assert!(
            of(None, &[base, ("OTEL_TRACES_EXPORTER", "none"), ("OTEL_METRICS_EXPORTER", "none")]).is_none()
        );
    }

    #[test]
    fn an_unsupported_protocol_is_noted_once_and_attributes_are_sent() {
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
        let named = of(
            None,
            &[
                base,
                ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
                ("OTEL_SERVICE_NAME", "nightly"),
                ("OTEL_RESOURCE_ATTRIBUTES", "team=a%2Cb, service.name=other"),
            ],
        )
        .unwrap();
        assert_eq!(
            named.notes(),
            ["OTEL_EXPORTER_OTLP_PROTOCOL says \"grpc\"; what is sent is http/json all the same"]
        );
        let said: Vec<_> =
            named.resource.attributes.iter().map(|(key, it)| (key.as_str(), it.as_str())).collect();
        assert_eq!(said, [("team", "a,b"), ("service.name", "other"), ("service.name", "nightly")]);
        let odd = of(None, &[base, ("OTEL_RESOURCE_ATTRIBUTES", "no pair")]).unwrap();
        assert!(odd.resource.attributes.is_empty() && odd.notes()[0].contains("OTEL_RESOURCE_ATTRIBUTES"));
        let fine = of(None, &[base, ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")]).unwrap();
        assert!(fine.notes().is_empty());
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
    fn headers_are_parsed_from_their_variable() {
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
