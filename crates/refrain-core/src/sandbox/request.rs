//! What the proxy of a sandbox answers.

use core::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Host;

/// A host that was refused to a process in the sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefusedHost {
    pub host: String,
    /// How often.
    pub count: u32,
    /// It is allowed, but its name is one of the user's own network, or resolves to an address there.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub is_private: bool,
}

/// What is done with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyDecision {
    Connect(Host),
    /// Plain HTTP to an allowed host: the same over HTTPS.
    Redirect(String),
    Refuse(Request),
}

/// A request that is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What it asked for, as far as it is printable.
    pub host: String,
    pub why: String,
    /// The host is among those of the sandbox: another part of the request is at fault.
    pub is_allowed: bool,
}

/// The longest name of a host that is repeated.
const LONGEST_NAME: usize = 100;

/// The answer to the head of a request.
#[must_use]
pub fn answer(hosts: &[Host], head: &[u8]) -> ProxyDecision {
    let head = String::from_utf8_lossy(head);
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let refuse = |host: &str, why: &str| {
        // An address after `=` would be the program's own choice.
        let host = host.split('=').next().unwrap_or_default();
        let host = host.chars().filter(char::is_ascii_graphic).take(LONGEST_NAME).collect();
        ProxyDecision::Refuse(Request { host, why: why.to_owned(), is_allowed: false })
    };
    if method == "CONNECT" {
        let Some((name, port)) = target.rsplit_once(':') else { return refuse(target, "it has no port") };
        let Ok(port) = port.parse() else { return refuse(target, "it has no port") };
        if name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() {
            return refuse(target, "it is an address, and only names are allowed");
        }
        let mut named = hosts.iter().filter(|host| host.is(name, port));
        // One that was allowed later with an address counts.
        let host = named.clone().rfind(|host| host.address.is_some()).or_else(|| named.next());
        return host.map_or_else(
            || refuse(target, "it is not among its hosts"),
            |host| ProxyDecision::Connect(host.clone()),
        );
    }
    let Some(rest) = target.strip_prefix("http://") else {
        return refuse(target, "it is no request for a proxy");
    };
    let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
    let name = place.strip_suffix(":80").unwrap_or(place);
    if !hosts.iter().any(|host| host.is(name, Host::HTTPS)) {
        return refuse(place, "it is not among its hosts");
    }
    match path.chars().all(|c| c.is_ascii_graphic()) {
        true => ProxyDecision::Redirect(format!("https://{name}/{path}")),
        false => ProxyDecision::Refuse(Request {
            host: name.to_owned(),
            why: "its path is not printable ASCII".to_owned(),
            is_allowed: true,
        }),
    }
}

/// Whether an address is one of this machine or of a network that it is in. Others that [`is_public`] excludes may stand
/// for any name behind a proxy.
#[must_use]
pub fn is_of_own_network(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(it) => {
            // 100.64.0.0/10 is what private networks over the Internet use.
            let is_shared = matches!(it.octets(), [100, 64..=127, ..]);
            it.is_loopback() || it.is_private() || it.is_link_local() || it.is_unspecified() || is_shared
        }
        IpAddr::V6(it) => {
            it.is_loopback() || it.is_unique_local() || it.is_unicast_link_local() || it.is_unspecified()
        }
    }
}

/// Whether an address is one of the public Internet.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            let is_shared = a == 100 && (64..128).contains(&b);
            let is_benchmark = a == 198 && (18..20).contains(&b);
            let is_assigned = a == 192 && b == 0 && c == 0;
            !(address.is_private()
                || address.is_loopback()
                || address.is_link_local()
                || address.is_broadcast()
                || address.is_multicast()
                || address.is_documentation()
                || is_shared
                || is_benchmark
                || is_assigned
                || a == 0
                || a >= 240)
        }
        IpAddr::V6(address) => {
            let inside = address.to_ipv4_mapped();
            let [first, second, ..] = address.segments();
            // Only 2000::/3 is assigned to the public; what of it leads to IPv4 addresses or nowhere is not.
            let is_global = first & 0xe000 == 0x2000;
            let is_tunnel =
                first == 0x2002 || first == 0x2001 && second < 0x200 || first == 0x2001 && second == 0xdb8;
            inside.map_or(is_global && !is_tunnel, |inside| is_public(IpAddr::V4(inside)))
        }
    }
}
