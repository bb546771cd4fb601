//! Hosts that a process in the sandbox may reach.

use core::net::IpAddr;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde_with::{DeserializeFromStr, SerializeDisplay};

use crate::spec::AgentKind;

/// A host that may be reached: `NAME`, `NAME:PORT` or `NAME:PORT=ADDRESS`. With an address the name is not resolved,
/// and the address may be a private one.
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, SerializeDisplay, DeserializeFromStr, JsonSchema,
)]
#[schemars(with = "String")]
pub struct Host {
    pub name: String,
    pub port: u16,
    pub address: Option<IpAddr>,
}

/// The last labels of names that no public server answers for (RFC 6761, RFC 6762, and `internal` of ICANN).
const LOCAL: [&str; 5] = ["localhost", "local", "internal", "localdomain", "home.arpa"];

/// Why a text is no host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a host; accepted: NAME, NAME:PORT and NAME:PORT=ADDRESS, with a name and not an address"
)]
pub struct HostError(String);

impl Host {
    pub(super) const HTTPS: u16 = 443;

    /// Whether a request for this name and port is for this host.
    #[must_use]
    pub fn is(&self, name: &str, port: u16) -> bool {
        self.port == port && self.name.eq_ignore_ascii_case(name.trim_end_matches('.'))
    }

    /// Whether its name is one of the machine or of its own network, whatever resolves it.
    #[must_use]
    pub fn is_local(&self) -> bool {
        let is_below = |end: &&str| self.name.strip_suffix(*end).is_some_and(|rest| rest.ends_with('.'));
        !self.name.contains('.') || LOCAL.iter().any(is_below)
    }
}

impl FromStr for Host {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        let wrong = || HostError(text.to_owned());
        let (place, address) = match text.split_once('=') {
            Some((place, address)) => (place, Some(address.parse().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let (name, port) = match place.rsplit_once(':') {
            Some((name, port)) => (name, port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?),
            None => (place, Self::HTTPS),
        };
        let is_label = |label: &str| {
            let is_inside = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
            !label.is_empty() && !label.starts_with('-') && label.len() <= 63 && label.bytes().all(is_inside)
        };
        let is_name = name.len() <= 253 && name.split('.').all(is_label) && name.parse::<IpAddr>().is_err();
        // A name whose last part is a number is an address in one of its old forms.
        let is_number =
            |label: &str| label.bytes().all(|byte| byte.is_ascii_digit()) || label.starts_with("0x");
        if !is_name || name.rsplit('.').next().is_none_or(is_number) {
            return Err(wrong());
        }
        Ok(Self { name: name.to_ascii_lowercase(), port, address })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.port)?;
        self.address.map_or(Ok(()), |address| write!(f, "={address}"))
    }
}

/// The hosts of an agent's provider, with those of its login.
#[must_use]
pub fn agent_hosts(kind: AgentKind) -> Vec<Host> {
    let names: &[&str] = match kind {
        AgentKind::Generic | AgentKind::Acp => &[],
        AgentKind::Claude => {
            &["api.anthropic.com", "console.anthropic.com", "platform.claude.com", "claude.ai"]
        }
        AgentKind::Codex => &["api.openai.com", "auth.openai.com", "chatgpt.com"],
        AgentKind::Opencode => {
            &["api.anthropic.com", "api.openai.com", "auth.openai.com", "chatgpt.com", "models.opencode.ai"]
        }
        AgentKind::Gemini => {
            &["generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com", "oauth2.googleapis.com"]
        }
    };
    let host = |name: &&str| Host { name: (*name).to_owned(), port: Host::HTTPS, address: None };
    names.iter().map(host).collect()
}
