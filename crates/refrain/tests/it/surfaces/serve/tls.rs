//! `refrain serve` with a certificate of its own: a client that trusts it comes from anywhere, and no other client.

use std::fs::{self, Permissions};
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rstest::rstest;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion};
use testkit::Sandbox;

use super::client::{Reply, TestServer};
use crate::sandbox;

/// A self-signed certificate and its key, in files.
struct Certificate {
    file: PathBuf,
    key: PathBuf,
    der: CertificateDer<'static>,
}

impl Certificate {
    fn of(sandbox: &Sandbox, names: &[&str]) -> Self {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
        let (file, key) = (sandbox.root().join("cert.pem"), sandbox.root().join("key.pem"));
        testkit::write(&file, cert.pem());
        testkit::write(&key, signing_key.serialize_pem());
        fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
        Self { file, key, der: cert.der().clone() }
    }

    fn words(&self) -> [&str; 4] {
        ["--tls-cert", self.file.to_str().unwrap(), "--tls-key", self.key.to_str().unwrap()]
    }

    /// A conversation with the server by a client that trusts this alone, and looks for that name.
    fn connects(
        &self,
        served: &TestServer,
        name: &str,
        version: &'static SupportedProtocolVersion,
    ) -> StreamOwned<ClientConnection, TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_protocol_versions(&[version]).unwrap().with_root_certificates(roots);
        let config = Arc::new(config.with_no_client_auth());
        let name = ServerName::try_from(name.to_owned()).unwrap();
        StreamOwned::new(ClientConnection::new(config, name).unwrap(), served.connects())
    }

    /// Asks over TLS, for that host.
    fn says(&self, served: &TestServer, host: &str, head: &str, body: &str) -> Reply {
        let mut stream = self.connects(served, "loops.example.org", &TLS13);
        let head = format!(
            "{head}\r\nHost: {host}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        Reply::read(BufReader::new(stream))
    }
}

#[test]
fn with_a_certificate_it_is_found_from_anywhere_under_the_names_in_it() {
    let sandbox = sandbox();
    let certificate = Certificate::of(&sandbox, &["loops.example.org", "*.lan.example.org", "127.0.0.1"]);
    let served = TestServer::begin(&sandbox, &[&["--host", "0.0.0.0"][..], &certificate.words()].concat());
    let port = served.port();
    assert_eq!(served.url(), format!("https://loops.example.org:{port}"));
    assert!(!served.told().contains("warning"), "{}", served.told());
    let bearer = format!("GET /api/v1/loops HTTP/1.1\r\nAuthorization: Bearer {}", served.token());
    for host in ["loops.example.org", "LOOPS.example.org", "box.lan.example.org", "127.0.0.1"] {
        certificate.says(&served, &format!("{host}:{port}"), &bearer, "").with_status(200);
    }
    certificate.says(&served, "loops.example.org", &bearer, "").with_status(200);
    for host in ["evil.example", "a.b.lan.example.org", "refrain.localhost", "127.0.0.2", "lan.example.org"] {
        let refused = certificate.says(&served, &format!("{host}:{port}"), &bearer, "").with_status(403);
        refused.says("not found under that name; accepted: loops.example.org");
    }

    // A person types a token from another machine; the cookie goes over TLS alone, and to this host alone.
    let host = format!("loops.example.org:{port}");
    let page = certificate.says(&served, &host, "GET /login HTTP/1.1", "").with_status(200);
    page.says(r#"autocomplete="current-password""#);
    let form = "POST /login HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded";
    let opened = certificate.says(&served, &host, form, &format!("token={}", served.token()));
    let set = opened.with_status(303).header("set-cookie").unwrap().to_owned();
    let cookie = set.split(';').next().unwrap();
    assert!(cookie.starts_with(&format!("__Host-refrain_{port}=")), "{set}");
    assert!(set.contains("; Path=/; ") && set.ends_with("; Secure") && !set.contains("Domain"), "{set}");
    let post = |origin: &str| format!("POST /api/v1/loops HTTP/1.1\r\nCookie: {cookie}\r\nOrigin: {origin}");
    certificate.says(&served, &host, &post(&format!("https://{host}")), "{}").with_status(400).says("goal");
    certificate.says(&served, &host, &post("https://evil.example"), "{}").with_status(403);
    let other = format!("box.lan.example.org:{port}");
    let listed = format!("GET /api/v1/loops HTTP/1.1\r\nCookie: {cookie}");
    certificate.says(&served, &host, &listed, "").with_status(200);
    certificate.says(&served, &other, &listed, "").with_status(401);
    served.ends();
}

#[test]
fn a_client_without_tls_is_refused_and_a_silent_one_delays_no_other() {
    let sandbox = sandbox();
    let certificate = Certificate::of(&sandbox, &["loops.example.org"]);
    let served = TestServer::begin(&sandbox, &certificate.words());
    let mut plain = served.connects();
    plain.write_all(b"GET /login HTTP/1.1\r\nHost: loops.example.org\r\n\r\n").unwrap();
    let mut said = Vec::new();
    let _ = plain.read_to_end(&mut said);
    assert!(!said.starts_with(b"HTTP"), "what is said is an alert of TLS at most: {said:?}");
    // Some send nothing, some begin and stop.
    let mut silent: Vec<_> = (0..30).map(|_| served.connects()).collect();
    silent.iter_mut().step_by(2).for_each(|stream| stream.write_all(&[22, 3, 1, 2, 0, 1]).unwrap());
    for version in [&TLS12, &TLS13] {
        let mut stream = certificate.connects(&served, "loops.example.org", version);
        let host = format!("loops.example.org:{}", served.port());
        write!(stream, "GET /login HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        Reply::read(BufReader::new(stream)).with_status(200);
    }
    served.ends();
}

#[test]
fn a_key_that_others_can_read_is_warned_of() {
    let sandbox = sandbox();
    let certificate = Certificate::of(&sandbox, &["loops.example.org"]);
    fs::set_permissions(&certificate.key, Permissions::from_mode(0o644)).unwrap();
    let served = TestServer::begin(&sandbox, &certificate.words());
    let told = served.told();
    assert!(told.contains("key.pem can be read by others") && told.contains("chmod 600"), "{told}");
    served.ends();
}

#[rstest]
#[case(&["--tls-cert", "CERT"], "--tls-key")]
#[case(&["--tls-key", "KEY"], "--tls-cert")]
#[case(&["--tls-cert", "CERT", "--tls-key", "KEY", "--behind-proxy", "https://a.example"], "--behind-proxy")]
#[case(&["--tls-cert", "nowhere.pem", "--tls-key", "KEY"], "nowhere.pem: it cannot be read; accepted: a file in PEM")]
#[case(&["--tls-cert", "CERT", "--tls-key", "nowhere.pem"], "nowhere.pem: it cannot be read")]
#[case(&["--tls-cert", "KEY", "--tls-key", "KEY"], "key.pem: there is no certificate in it")]
#[case(&["--tls-cert", "README.md", "--tls-key", "KEY"], "README.md: there is no certificate in it")]
#[case(&["--tls-cert", "CERT", "--tls-key", "CERT"], "cert.pem: there is no key in it")]
#[case(&["--tls-cert", "CERT", "--tls-key", "OTHER"], "cannot be used together")]
#[case(&["--tls-cert", "WILD", "--tls-key", "OTHER", "--host", "0.0.0.0"], "the certificate names no host, nor 0.0.0.0")]
fn files_that_no_tls_can_be_made_of_are_refused_by_name(#[case] words: &[&str], #[case] says: &str) {
    let sandbox = sandbox();
    let other = Certificate::of(&sandbox, &["*.example.org"]);
    let (wild, other_key) = (sandbox.root().join("wild.pem"), sandbox.root().join("other.pem"));
    fs::rename(&other.file, &wild).unwrap();
    fs::rename(&other.key, &other_key).unwrap();
    let certificate = Certificate::of(&sandbox, &["loops.example.org"]);
    let before = sandbox.snapshot();
    let word = |word: &&str| match *word {
        "CERT" => certificate.file.display().to_string(),
        "KEY" => certificate.key.display().to_string(),
        "WILD" => wild.display().to_string(),
        "OTHER" => other_key.display().to_string(),
        word => word.to_owned(),
    };
    let words: Vec<_> = words.iter().map(word).collect();
    let words: Vec<_> =
        ["serve", "--port", "0"].into_iter().chain(words.iter().map(String::as_str)).collect();
    let run = sandbox.refrain(&words).with_code(2);
    assert!(run.stderr.contains(says), "{}", run.stderr);
    assert_eq!(sandbox.snapshot(), before);
}
