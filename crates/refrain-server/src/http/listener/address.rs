//! The address on which the server listens, and its names.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::http::listener::tls::Tls;

/// The name under which browsers find a server on loopback: they resolve all of `.localhost` to it, and keep its
/// cookies apart from other servers on 127.0.0.1, on every port.
pub(crate) const NAME: &str = "refrain.localhost";

/// The address to listen on, and the way of access.
#[derive(Clone, Debug)]
pub struct Address {
    /// The address and the port; port 0 is any that is free.
    pub(crate) listen: SocketAddr,
    pub(crate) way: Way,
}

/// How people come there.
#[derive(Clone, Debug)]
pub enum Way {
    /// On this machine: traffic cannot be read on the way.
    Loopback,
    /// Through a proxy that speaks TLS: its origin, as `https://loops.example.org`.
    Proxy(String),
    /// By TLS that the server speaks itself.
    Tls(Box<Tls>),
}

/// An address that the server does not take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Others could reach it and read the traffic.
    #[error(
        "{0} can be reached from outside, where others read what passes: accepted: loopback addresses; --tls-cert FILE \
         with --tls-key FILE; or --behind-proxy ORIGIN for a proxy that speaks TLS and asks people who they are"
    )]
    Open(IpAddr),
    /// It is no origin.
    #[error(
        "{0}: accepted: the origin of the proxy, as https://loops.example.org, with nothing after the host"
    )]
    NoOrigin(String),
    /// The certificate names no host for the server's URL.
    #[error(
        "the certificate names no host, nor {0}: accepted: one that has a name in its subjectAltName (one with a wildcard \
         says none), or the address that is given to --host"
    )]
    NoName(IpAddr),
}

impl Address {
    /// Checks the request against what is safe.
    pub fn new(host: IpAddr, port: u16, way: Way) -> Result<Self, AddressError> {
        match &way {
            Way::Loopback if !host.is_loopback() => return Err(AddressError::Open(host)),
            Way::Proxy(origin) if !is_origin(origin) => return Err(AddressError::NoOrigin(origin.clone())),
            Way::Tls(tls) if tls.host(host).is_none() => return Err(AddressError::NoName(host)),
            Way::Loopback | Way::Proxy(_) | Way::Tls(_) => {}
        }
        Ok(Self { listen: SocketAddr::new(host, port), way })
    }

    /// The other loopback address that the browsers' name resolves to, in any order.
    pub(crate) fn other(&self, port: u16) -> Option<SocketAddr> {
        let ip = match self.listen.ip() {
            ip if !matches!(self.way, Way::Loopback) || !is_named(ip) => return None,
            IpAddr::V4(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
            IpAddr::V6(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        };
        Some(SocketAddr::new(ip, port))
    }
}

/// Whether browsers are led there by name.
fn is_named(ip: IpAddr) -> bool {
    ip == IpAddr::V4(Ipv4Addr::LOCALHOST) || ip == IpAddr::V6(Ipv6Addr::LOCALHOST)
}

fn is_origin(text: &str) -> bool {
    let host = text.strip_prefix("https://");
    let plain =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-' | ':' | '[' | ']');
    host.is_some_and(|host| !host.is_empty() && host.chars().all(plain))
}

/// The names of a listening server. A request under another name was redirected here, for example by DNS rebinding.
#[derive(Debug)]
pub(crate) struct Names {
    /// The URL for browsers.
    pub(crate) origin: String,
    /// The URL for programs on this machine.
    pub(crate) direct: String,
    /// The hosts for browsers, beside those of the certificate; the first is the origin's.
    people: Vec<String>,
    /// The hosts for programs; no browser may send its cookie to them.
    programs: Vec<String>,
    tls: Option<Box<Tls>>,
}

/// The kind of name that a request came under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Under {
    /// That of browsers: this host.
    People(String),
    /// That of programs, which show a token.
    Programs,
}

impl Names {
    /// Those of an address, now that its port is known.
    pub(crate) fn new(way: Way, at: SocketAddr) -> Self {
        let (ip, port) = (at.ip(), at.port());
        let own = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{port}"));
        let numbers: Vec<_> = own.into_iter().chain([at.to_string()]).collect();
        let direct = format!("http://{at}");
        match way {
            // Some proxies pass on the name that they know it by themselves.
            Way::Proxy(origin) => {
                let host = origin.split_once("://").map_or("", |(_, host)| host).to_owned();
                let people = [host].into_iter().chain(numbers).collect();
                Self { origin, direct, people, programs: Vec::new(), tls: None }
            }
            Way::Tls(tls) => {
                let host = format!("{}:{port}", tls.host(ip).unwrap_or_else(|| ip.to_string()));
                let origin = format!("https://{host}");
                let direct = origin.clone();
                Self { origin, direct, people: vec![host], programs: Vec::new(), tls: Some(tls) }
            }
            Way::Loopback => {
                let host = if is_named(ip) { format!("{NAME}:{port}") } else { at.to_string() };
                let origin = format!("http://{host}");
                Self { origin, direct, people: vec![host], programs: numbers, tls: None }
            }
        }
    }

    /// The kind of name a `Host` is; none if it is no name of this server.
    pub(crate) fn whose(&self, host: &str) -> Option<Under> {
        let host = host.to_ascii_lowercase();
        // Clients omit the default port.
        let default_port = if self.is_secure() { ":443" } else { ":80" };
        let short = |host: &str| host.strip_suffix(default_port).unwrap_or(host).to_owned();
        let host = short(&host);
        let is_it = |name: &String| short(name) == host;
        let is_certified = || self.tls.as_ref().is_some_and(|tls| tls.is_good_for(without_port(&host)));
        if self.people.iter().any(is_it) || is_certified() {
            return Some(Under::People(host));
        }
        self.programs.iter().any(is_it).then_some(Under::Programs)
    }

    /// The accepted `Host` values, for an error message.
    pub(crate) fn accepted(&self) -> String {
        let certified = self.tls.iter().flat_map(|tls| tls.names());
        let mut all: Vec<_> =
            self.people.iter().chain(certified).chain(&self.programs).map(String::as_str).collect();
        let mut seen = HashSet::new();
        all.retain(|host| seen.insert(*host));
        all.join(", ")
    }

    /// Whether people come over TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.origin.starts_with("https:")
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        Some(_) | None => host,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("127.0.0.1", None, true)]
    #[case("::1", None, true)]
    #[case("0.0.0.0", None, false)]
    #[case("192.168.1.7", None, false)]
    #[case("0.0.0.0", Some("https://loops.example.org"), true)]
    #[case("127.0.0.1", Some("https://loops.example.org:8443"), true)]
    #[case("0.0.0.0", Some("loops.example.org"), false)]
    #[case("0.0.0.0", Some("https://"), false)]
    #[case("0.0.0.0", Some("https://loops.example.org/"), false)]
    #[case("0.0.0.0", Some("https://Loops.example.org"), false)]
    #[case("0.0.0.0", Some("http://loops.example.org"), false)]
    #[case("0.0.0.0", Some("ftp://loops.example.org"), false)]
    fn only_loopback_is_open_without_a_proxy(
        #[case] host: &str,
        #[case] public: Option<&str>,
        #[case] is_taken: bool,
    ) {
        let way = public.map_or(Way::Loopback, |origin| Way::Proxy(origin.to_owned()));
        let address = Address::new(host.parse().unwrap(), 0, way);
        assert_eq!(address.is_ok(), is_taken, "{address:?}");
    }

    #[rstest]
    #[case(None, "127.0.0.1:7773", "refrain.localhost:7773", Some(true))]
    #[case(None, "127.0.0.1:7773", "REFRAIN.localhost:7773", Some(true))]
    #[case(None, "[::1]:7773", "refrain.localhost:7773", Some(true))]
    #[case(None, "127.0.0.1:7773", "127.0.0.1:7773", Some(false))]
    #[case(None, "127.0.0.1:7773", "localhost:7773", Some(false))]
    #[case(None, "[::1]:7773", "[::1]:7773", Some(false))]
    #[case(None, "127.0.0.1:80", "127.0.0.1", Some(false))]
    #[case(None, "127.0.0.1:80", "refrain.localhost", Some(true))]
    #[case(None, "127.0.0.1:7773", "refrain.localhost", None)]
    #[case(None, "127.0.0.1:7773", "refrain.localhost:3000", None)]
    #[case(None, "127.0.0.1:7773", "other.localhost:7773", None)]
    #[case(None, "127.0.0.1:7773", "", None)]
    // Browsers are led to no other address of loopback.
    #[case(None, "127.0.0.2:7773", "127.0.0.2:7773", Some(true))]
    #[case(Some("https://loops.example.org"), "0.0.0.0:80", "loops.example.org", Some(true))]
    #[case(Some("https://loops.example.org"), "0.0.0.0:80", "loops.example.org:443", Some(true))]
    #[case(Some("https://loops.example.org"), "0.0.0.0:7773", "127.0.0.1:7773", Some(true))]
    #[case(Some("https://loops.example.org"), "0.0.0.0:7773", "refrain.localhost:7773", None)]
    fn a_host_name_is_for_browsers_for_programs_or_unknown(
        #[case] proxy: Option<&str>,
        #[case] at: &str,
        #[case] host: &str,
        #[case] is_peoples: Option<bool>,
    ) {
        let way = proxy.map_or(Way::Loopback, |origin| Way::Proxy(origin.to_owned()));
        let whose = Names::new(way, at.parse().unwrap()).whose(host);
        assert_eq!(whose.map(|whose| matches!(whose, Under::People(_))), is_peoples);
    }
}
