//! The proxy, with the test in the place of the sandbox.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

use refrain_proc::keeper::{FrameReader, send};
use refrain_sandbox::Reply;
use rstest::rstest;

use super::*;

/// A sandbox whose proxy allows these hosts.
struct FakeSandbox {
    _socket: UnixStream,
    proxy: SocketAddr,
    refused: RefusedHosts,
}

impl FakeSandbox {
    fn new(hosts: &[&str], upstream: Option<&str>) -> Self {
        let hosts = hosts.iter().map(|host| host.parse().unwrap()).collect();
        let policy = Policy { hosts, ..Policy::default() };
        let plan = plan(vec!["true".to_owned()], "/".into(), Vec::new(), policy);
        let (socket, theirs) = UnixStream::pair().unwrap();
        let refused = RefusedHosts::default();
        let stdin = File::open("/dev/null").unwrap().into();
        let upstream =
            upstream.and_then(|url| proxy::upstream(&[("HTTPS_PROXY".into(), url.to_owned().into())]));
        proxy::serve(socket, plan, stdin, (upstream, refused.clone())).unwrap();
        let mut reader = FrameReader::default();
        let plan: Plan = loop {
            assert!(reader.fill(&theirs).unwrap());
            if let Some(plan) = reader.next().unwrap() {
                break plan;
            }
        };
        assert_eq!(plan.listen, [PROXY_PORT]);
        let [_stdin]: [OwnedFd; 1] = reader.take_fds().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        send(&theirs, &Reply::Listening(PROXY_PORT), &[listener.as_fd()]).unwrap();
        Self { _socket: theirs, proxy: listener.local_addr().unwrap(), refused }
    }

    /// Asks for a host, and returns the first line of the answer with the connection.
    fn ask(&self, request: &str) -> (String, TcpStream) {
        let mut client = TcpStream::connect(self.proxy).unwrap();
        client.write_all(format!("{request}\r\nHost: x\r\n\r\n").as_bytes()).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            client.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        (String::from_utf8(head).unwrap().lines().next().unwrap().to_owned(), client)
    }

    fn refused(&self) -> Vec<(String, u32)> {
        self.refused.take().into_iter().map(|refused| (refused.host, refused.count)).collect()
    }
}

/// The first message of TLS for that name.
fn hello(name: &str) -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let name = name.to_owned().try_into().unwrap();
    let mut connection = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut hello = Vec::new();
    connection.write_tls(&mut hello).unwrap();
    hello
}

/// A server that reads to the end, and answers then.
fn server() -> (u16, JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let served = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut said = Vec::new();
        client.read_to_end(&mut said).unwrap();
        client.write_all(b"answer").unwrap();
        said
    });
    (port, served)
}

#[test]
fn an_allowed_host_gets_all_bytes_and_answers_after_the_client_has_ended() {
    let (port, served) = server();
    let sandbox = FakeSandbox::new(&[&format!("api.example.org:{port}=127.0.0.1")], None);
    let (answer, mut client) = sandbox.ask(&format!("CONNECT api.example.org:{port} HTTP/1.1"));
    assert_eq!(answer, "HTTP/1.1 200 Connection established");
    let hello = hello("api.example.org");
    let (first, second) = hello.split_at(7);
    client.write_all(first).unwrap();
    client.write_all(second).unwrap();
    client.write_all(b"more").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "answer");
    assert_eq!(served.join().unwrap(), [&*hello, b"more"].concat());
    assert_eq!(sandbox.refused(), []);
}

#[rstest]
#[case::another_host("CONNECT evil.example:443 HTTP/1.1", "evil.example:443")]
#[case::an_address("CONNECT 127.0.0.1:443 HTTP/1.1", "127.0.0.1:443")]
#[case::another_port("CONNECT localhost:22 HTTP/1.1", "localhost:22")]
#[case::a_private_address("CONNECT localhost:443 HTTP/1.1", "localhost:443")]
#[case::plain_http("GET http://evil.example/ HTTP/1.1", "evil.example")]
fn refused_requests_are_counted(#[case] request: &str, #[case] host: &str) {
    let sandbox = FakeSandbox::new(&["localhost"], None);
    for _ in 0..2 {
        let (answer, mut client) = sandbox.ask(request);
        assert_eq!(answer, "HTTP/1.1 403 Forbidden");
        let mut why = String::new();
        client.read_to_string(&mut why).unwrap();
        assert!(why.contains(host), "{why}");
    }
    assert_eq!(sandbox.refused(), [(host.to_owned(), 2)]);
}

#[rstest]
#[case::another_name(hello("evil.example"), "TLS names another host")]
#[case::no_name(hello("127.0.0.1"), "TLS names no host")]
#[case::no_tls(b"SSH-2.0-x\r\n".to_vec(), "no TLS")]
fn only_tls_for_that_host_passes(#[case] hello: Vec<u8>, #[case] why: &str) {
    let (port, served) = server();
    let host = format!("api.example.org:{port}");
    let sandbox = FakeSandbox::new(&[&format!("{host}=127.0.0.1")], None);
    let (answer, mut client) = sandbox.ask(&format!("CONNECT {host} HTTP/1.1"));
    assert_eq!(answer, "HTTP/1.1 200 Connection established");
    client.write_all(&hello).unwrap();
    let mut answer = Vec::new();
    // Closed, or reset.
    let _ = client.read_to_end(&mut answer);
    assert_eq!(answer, b"");
    assert_eq!(served.join().unwrap(), b"", "the host saw nothing of it");
    assert_eq!(sandbox.refused(), [(format!("{host} ({why})"), 1)]);
}

#[test]
fn an_allowed_host_is_redirected_to_https() {
    let sandbox = FakeSandbox::new(&["localhost"], None);
    assert_eq!(sandbox.ask("GET http://localhost/a HTTP/1.1").0, "HTTP/1.1 301 Moved Permanently");
}

#[test]
fn the_proxy_of_the_user_is_asked() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://ada:pass@{}", listener.local_addr().unwrap());
    let served = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut said = vec![0; 300];
        let length = client.read(&mut said).unwrap();
        client.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n").unwrap();
        String::from_utf8(said[..length].to_vec()).unwrap()
    });
    let sandbox = FakeSandbox::new(&["api.example.org"], Some(&url));
    assert_eq!(sandbox.ask("CONNECT api.example.org:443 HTTP/1.1").0, "HTTP/1.1 502 Bad Gateway");
    let said = served.join().unwrap();
    assert!(said.starts_with("CONNECT api.example.org:443 HTTP/1.1\r\n"), "{said}");
    assert!(said.contains("Proxy-Authorization: Basic YWRhOnBhc3M=\r\n"), "{said}");
}

/// The proxy of the user may be on this machine, and reach what the agent may not.
#[rstest]
#[case("localhost")]
#[case("registry.localhost")]
#[case("metadata.google.internal")]
#[case("nas")]
fn the_proxy_of_the_user_is_not_asked_for_names_of_the_users_own_network(#[case] name: &str) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let sandbox = FakeSandbox::new(&[&format!("{name}:8443")], Some(&url));
    assert_eq!(sandbox.ask(&format!("CONNECT {name}:8443 HTTP/1.1")).0, "HTTP/1.1 403 Forbidden");
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err());
    let refused = sandbox.refused.take();
    assert!(refused[0].is_private && refused[0].host == format!("{name}:8443"), "{refused:?}");
}

#[test]
fn an_address_that_the_user_gives_later_counts() {
    let (port, _served) = server();
    let name = format!("localhost:{port}");
    let sandbox = FakeSandbox::new(&[&name, &format!("{name}=127.0.0.1")], None);
    assert_eq!(sandbox.ask(&format!("CONNECT {name} HTTP/1.1")).0, "HTTP/1.1 200 Connection established");
}

/// It would be suggested to the user.
#[test]
fn an_address_that_an_agent_names_is_not_recorded() {
    let sandbox = FakeSandbox::new(&[], None);
    sandbox.ask("CONNECT evil.example:443=127.0.0.1:443 HTTP/1.1");
    assert_eq!(sandbox.refused(), [("evil.example:443".to_owned(), 1)]);
}

#[test]
fn a_proxy_of_the_user_is_found_with_its_login() {
    for (url, place, login) in [
        ("http://proxy.test:3128/", Some("proxy.test:3128"), None),
        ("proxy.test", Some("proxy.test:80"), None),
        ("http://[::1]", Some("[::1]:80"), None),
        ("http://ada:p%40ss@proxy.test:8080/path", Some("proxy.test:8080"), Some("YWRhOnBAc3M=")),
        ("socks5://proxy.test:1080", None, None),
    ] {
        let upstream = proxy::upstream(&[("HTTPS_PROXY".into(), url.into())]);
        let found = upstream.as_ref().map(|it| (it.place.as_str(), it.login.as_deref()));
        assert_eq!(found, place.map(|place| (place, login)), "{url}");
    }
}
