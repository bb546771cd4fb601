//! The network of a sandbox: its listening sockets are served by a thread of the runner. Programs in it reach the hosts
//! that its policy names, and nothing else.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use refrain_core::sandbox::{
    Host, PROXY_PORT, Policy, ProxyDecision, RefusedHost, Request, answer, is_of_own_network, is_public,
};
use refrain_proc::keeper::{FrameReader, send};
use refrain_sandbox::{Plan, Reply, restore_after};
use rustls::server::Acceptor;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The longest head of a request, and the longest first message of TLS.
const MOST_HEAD: usize = 8 << 10;
const MOST_HELLO: usize = 64 << 10;
/// How long a program may take to say what it wants, and a host to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long is waited for the address of a name that the user's own proxy resolves.
const LOOK: Duration = Duration::from_secs(2);
/// Connections at a time.
const MOST_CONNECTIONS: usize = 512;
/// How many hosts are remembered that were refused.
const MOST_REFUSED: usize = 50;

/// Hosts that were refused, and how often.
#[derive(Clone, Debug, Default)]
pub(crate) struct RefusedHosts(Arc<Mutex<BTreeMap<(String, bool), u32>>>);

impl RefusedHosts {
    fn add(&self, host: &str, is_private: bool) {
        let mut refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (host.to_owned(), is_private);
        if refused.len() < MOST_REFUSED || refused.contains_key(&key) {
            let count = refused.entry(key).or_default();
            *count = count.saturating_add(1);
        }
    }

    /// All of them.
    pub(crate) fn take(&self) -> Vec<RefusedHost> {
        let refused = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let host = |((host, is_private), count)| RefusedHost { host, count, is_private };
        refused.into_iter().map(host).collect()
    }
}

/// The user's own proxy for HTTPS: its host and port, and the value of its login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Upstream {
    pub(super) place: String,
    pub(super) login: Option<String>,
}

/// The user's own proxy.
pub(super) fn upstream(env: &[(OsString, OsString)]) -> Option<Upstream> {
    use base64::Engine;
    let set = |name: &str| {
        let (_, value) = env.iter().rev().find(|(set, _)| set == name)?;
        value.to_str().filter(|value| !value.is_empty())
    };
    let url = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"].into_iter().find_map(set)?;
    let url = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
    let url = reqwest::Url::parse(&url).ok().filter(|url| url.scheme() == "http")?;
    let place = format!("{}:{}", url.host_str()?, url.port_or_known_default()?);
    let login = (!url.username().is_empty()).then(|| {
        let decoded = |text: &str| percent_encoding::percent_decode_str(text).collect::<Vec<u8>>();
        let login =
            [&decoded(url.username())[..], b":", &decoded(url.password().unwrap_or_default())].concat();
        base64::engine::general_purpose::STANDARD.encode(login)
    });
    Some(Upstream { place, login })
}

struct Network {
    policy: Policy,
    upstream: Option<Upstream>,
    refused: RefusedHosts,
    connections: Arc<Semaphore>,
}

/// Starts a thread that gives the plan to the sandbox, and serves its network until the sandbox is gone.
pub(super) fn serve(
    socket: UnixStream,
    plan: Plan,
    stdin: OwnedFd,
    (upstream, refused): (Option<Upstream>, RefusedHosts),
) -> io::Result<()> {
    let network = Arc::new(Network {
        policy: plan.policy.clone(),
        upstream,
        refused,
        connections: Arc::new(Semaphore::new(MOST_CONNECTIONS)),
    });
    let records = plan.records.clone();
    let run = move || {
        // A sandbox that is gone reads nothing, and its end is reported by its process.
        if send(&socket, &plan, &[stdin.as_fd()]).is_err() {
            return;
        }
        drop((plan, stdin));
        let mut init = None;
        let _ = attend(socket, &network, &mut init);
        // The sandbox does this itself, unless it was killed.
        let _ = records.map(|folders| restore_after(init.as_ref(), &folders.of_loop));
    };
    std::thread::Builder::new().name("sandbox".to_owned()).stack_size(1 << 20).spawn(run).map(drop)
}

/// Takes the listening sockets as they come. Blocks until the sandbox is gone.
fn attend(socket: UnixStream, network: &Arc<Network>, init: &mut Option<OwnedFd>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut reader = FrameReader::default();
    socket.set_nonblocking(true)?;
    runtime.block_on(async {
        let readable = tokio::net::UnixStream::from_std(socket.try_clone()?)?;
        loop {
            readable.readable().await?;
            let filled = readable.try_io(tokio::io::Interest::READABLE, || reader.fill(&socket));
            match filled {
                Ok(true) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Ok(false) | Err(_) => return Ok(()),
            }
            while let Some(reply) = reader.next()? {
                match reply {
                    Reply::Init => *init = Some(reader.take_fds().map(|[init]| init)?),
                    Reply::Listening(port) => {
                        let [listener]: [OwnedFd; 1] = reader.take_fds()?;
                        let listener = std::net::TcpListener::from(listener);
                        listener.set_nonblocking(true)?;
                        tokio::spawn(listen(TcpListener::from_std(listener)?, port, Arc::clone(network)));
                    }
                    Reply::Refused(_) | Reply::Ready => {}
                }
            }
        }
    })
}

async fn listen(listener: TcpListener, port: u16, network: Arc<Network>) {
    loop {
        let Ok(permit) = Arc::clone(&network.connections).acquire_owned().await else { return };
        let client = match listener.accept().await {
            Ok((client, _)) => client,
            Err(_) => {
                // Too many open files: those that are open end first.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let network = Arc::clone(&network);
        tokio::spawn(async move {
            let _permit = permit;
            // What goes wrong with a connection is its client's to see.
            let _ = match port {
                PROXY_PORT => proxy(client, &network).await,
                port => forward(client, port).await,
            };
        });
    }
}

/// A port of the machine's own loopback address.
async fn forward(mut client: TcpStream, port: u16) -> io::Result<()> {
    let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    copy_bidirectional(&mut client, &mut server).await.map(drop)
}

async fn proxy(mut client: TcpStream, network: &Network) -> io::Result<()> {
    let Ok(head) = timeout(PATIENCE, head(&mut client)).await else { return Ok(()) };
    let host = match answer(&network.policy.hosts, &head?) {
        ProxyDecision::Connect(host) => host,
        ProxyDecision::Redirect(location) => {
            let head = format!(
                "HTTP/1.1 301 Moved Permanently\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            return client.write_all(head.as_bytes()).await;
        }
        ProxyDecision::Refuse(Request { host, why, is_allowed: true }) => {
            network.refused.add(&format!("{host} ({why})"), false);
            let why = format!("refrain: {host} is not asked in this sandbox: {why}");
            return respond(client, "403 Forbidden", &why).await;
        }
        ProxyDecision::Refuse(Request { host, why, is_allowed: false }) => {
            network.refused.add(&host, false);
            return refuse(client, &host, &why).await;
        }
    };
    let name = format!("{}:{}", host.name, host.port);
    let mut server = match timeout(PATIENCE, dial(&host, network)).await {
        Ok(Ok(server)) => server,
        Ok(Err(DialError::Private)) => {
            network.refused.add(&name, true);
            return refuse(client, &name, "it resolves to a private address").await;
        }
        Ok(Err(DialError::Io(error))) => {
            return respond(client, "502 Bad Gateway", &format!("{name}: {error}")).await;
        }
        Err(_) => return respond(client, "504 Gateway Timeout", &format!("{name} does not answer")).await,
    };
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
    let hello = match timeout(PATIENCE, hello(&mut client, &host.name)).await {
        Ok(Ok(hello)) => hello,
        Ok(Err(error)) if error.kind() == io::ErrorKind::PermissionDenied => {
            network.refused.add(&format!("{name} ({error})"), false);
            return Ok(());
        }
        Ok(Err(error)) => return Err(error),
        Err(_) => return Ok(()),
    };
    server.write_all(&hello).await?;
    copy_bidirectional(&mut client, &mut server).await.map(drop)
}

/// The head of a request, byte by byte: what follows it belongs to the connection.
async fn head(client: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= MOST_HEAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
        head.push(client.read_u8().await?);
    }
    Ok(head)
}

async fn refuse(client: TcpStream, host: &str, why: &str) -> io::Result<()> {
    respond(client, "403 Forbidden", &format!("refrain: {host} is not allowed in this sandbox: {why}")).await
}

async fn respond(mut client: TcpStream, status: &str, text: &str) -> io::Result<()> {
    let length = text.len() + 1;
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}\n"
    );
    client.write_all(answer.as_bytes()).await?;
    client.shutdown().await
}

enum DialError {
    /// The name leads into a network that is not public.
    Private,
    Io(io::Error),
}

impl From<io::Error> for DialError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Resolves the name once, and connects to that address.
async fn dial(host: &Host, network: &Network) -> Result<TcpStream, DialError> {
    if let Some(address) = host.address {
        return Ok(TcpStream::connect(SocketAddr::new(address, host.port)).await?);
    }
    if host.is_local() {
        return Err(DialError::Private);
    }
    let looked_up = lookup_host((host.name.as_str(), host.port));
    if let Some(upstream) = &network.upstream {
        // It resolves the name itself: behind it this machine often cannot, or has other addresses for all names.
        let found = timeout(LOOK, looked_up).await.map(|found| found.map(Iterator::collect::<Vec<_>>));
        let is_inside = |address: &SocketAddr| is_of_own_network(address.ip());
        if let Ok(Ok(found)) = found
            && !found.is_empty()
            && found.iter().all(is_inside)
        {
            return Err(DialError::Private);
        }
        return Ok(dial_upstream(host, upstream).await?);
    }
    let addresses: Vec<_> = looked_up.await?.collect();
    let is_any = !addresses.is_empty();
    let public: Vec<_> = addresses.into_iter().filter(|address| is_public(address.ip())).collect();
    if public.is_empty() && is_any {
        return Err(DialError::Private);
    }
    Ok(TcpStream::connect(&*public).await?)
}

/// Through the user's own proxy, which resolves the name.
async fn dial_upstream(host: &Host, upstream: &Upstream) -> io::Result<TcpStream> {
    let mut server = TcpStream::connect(&upstream.place).await?;
    let place = format!("{}:{}", host.name, host.port);
    let login = upstream.login.as_ref();
    let login = login.map_or_else(String::new, |login| format!("Proxy-Authorization: Basic {login}\r\n"));
    let request = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{login}\r\n");
    server.write_all(request.as_bytes()).await?;
    let head = head(&mut server).await?;
    let status = head.split(|byte| *byte == b' ').nth(1);
    match status {
        Some(b"200") => Ok(server),
        _ => Err(io::Error::other("your proxy refuses it")),
    }
}

/// The first message of TLS, which must name the host.
async fn hello(client: &mut TcpStream, name: &str) -> io::Result<Vec<u8>> {
    let denied = |why: &str| io::Error::new(io::ErrorKind::PermissionDenied, why.to_owned());
    let (mut acceptor, mut hello) = (Acceptor::default(), Vec::new());
    let mut chunk = vec![0; 4 << 10];
    loop {
        let length = client.read(&mut chunk).await?;
        if length == 0 || hello.len() > MOST_HELLO {
            return Err(denied("no TLS"));
        }
        let new = chunk.get(..length).unwrap_or_default();
        hello.extend_from_slice(new);
        let mut rest = new;
        while !rest.is_empty() && acceptor.read_tls(&mut rest)? > 0 {}
        match acceptor.accept() {
            Ok(None) => {}
            Ok(Some(accepted)) => {
                return match accepted.client_hello().server_name() {
                    Some(said) if said.eq_ignore_ascii_case(name) => Ok(hello),
                    Some(_) => Err(denied("TLS names another host")),
                    None => Err(denied("TLS names no host")),
                };
            }
            Err(_) => return Err(denied("no TLS")),
        }
    }
}
