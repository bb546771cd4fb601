//! Where the server listens, and under which names browsers find it there.

use std::net::{IpAddr, SocketAddr};

/// Where to listen, and who stands in front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The address and the port; port 0 is any that is free.
    pub listen: SocketAddr,
    /// How people reach a proxy that stands in front: its origin, as `https://loops.example.org`.
    pub public: Option<String>,
}

/// An address that the server does not take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Others could reach it, and read on the way what passes.
    #[error(
        "{0} can be reached from outside, and this server speaks no TLS: accepted are loopback addresses, or --behind-proxy \
         ORIGIN for a proxy that does and that asks people who they are"
    )]
    Open(IpAddr),
    /// It is no origin.
    #[error(
        "{0}: accepted is the origin of the proxy, as https://loops.example.org, with nothing behind the host"
    )]
    NoOrigin(String),
}

impl Address {
    /// Holds what was asked for against what is safe.
    ///
    /// # Errors
    /// [`AddressError`].
    pub fn new(host: IpAddr, port: u16, public: Option<String>) -> Result<Self, AddressError> {
        match &public {
            None if !host.is_loopback() => return Err(AddressError::Open(host)),
            Some(origin) if !is_origin(origin) => return Err(AddressError::NoOrigin(origin.clone())),
            None | Some(_) => {}
        }
        Ok(Self { listen: SocketAddr::new(host, port), public })
    }
}

fn is_origin(text: &str) -> bool {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let plain =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-' | ':' | '[' | ']');
    host.is_some_and(|host| !host.is_empty() && host.chars().all(plain))
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
    #[case("0.0.0.0", Some("ftp://loops.example.org"), false)]
    fn only_loopback_is_open_without_a_proxy(
        #[case] host: &str,
        #[case] public: Option<&str>,
        #[case] is_taken: bool,
    ) {
        let address = Address::new(host.parse().unwrap(), 0, public.map(str::to_owned));
        assert_eq!(address.is_ok(), is_taken, "{address:?}");
    }
}
