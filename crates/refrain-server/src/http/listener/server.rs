//! Accepts connections and limits each. Axum's own loop has no timeout for a client that begins a request and never
//! ends it, so the connections are driven here. axum-server has such a timeout, but its loop limits neither the number
//! of connections nor those in a handshake.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Extension, Router, middleware};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use refrain_engine::Key;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::csrf::CsrfLayer;

use crate::http::app_state::AppState;
use crate::http::connections::{ConnectionSlot, Connections};
use crate::http::failure::{self, Failure};
use crate::http::listener::address::{NAME, Names, Way};
use crate::http::listener::stop::{Stop, stopped};
use crate::http::listener::write_timeout::WriteTimeout;
use crate::http::{Address, guard, login, pages, routes};
use crate::mcp;
use crate::requests::RequestHandler;

/// The most connections at a time. At the limit the oldest unauthenticated one is closed; new ones wait in the system's
/// queue.
const MOST: usize = 256;
/// How long a client may take for the head of a request, and be silent between two.
const HEAD: Duration = Duration::from_secs(10);
/// How long a client may take until it and the server are agreed on TLS.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How many may be at that at a time; others wait, within the same bound.
const HANDSHAKES: usize = 64;
/// How long a client may read nothing of its response.
const TAKE: Duration = Duration::from_secs(60);
/// How much of a head is kept.
const LARGEST_HEAD: usize = 64 << 10;
/// How long running responses may take once the server is to stop.
const GRACE: Duration = Duration::from_secs(3);
/// How many ports are tried if any will do.
const TRIES: usize = 16;
/// The pause before accepting again after the system ran out of resources.
const AGAIN: Duration = Duration::from_millis(200);

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    /// The other loopback address, which the browsers' name resolves to as well.
    other: Option<TcpListener>,
    state: Arc<AppState>,
    tls: Option<Handshake>,
}

/// The TLS handshake.
#[derive(Clone)]
struct Handshake {
    acceptor: TlsAcceptor,
    places: Arc<Semaphore>,
}

impl std::fmt::Debug for Handshake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handshake").field("places", &self.places).finish_non_exhaustive()
    }
}

/// Why it does not.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The address cannot be had.
    #[error("cannot listen on {at}")]
    Listen { at: SocketAddr, source: io::Error },
    /// Another process listens on the other loopback address, or may.
    #[error(
        "{at} is taken: browsers that look for {name} may go there, and would send the token to the program that listens there"
    )]
    Taken {
        at: SocketAddr,
        /// The name that both have.
        name: &'static str,
        source: io::Error,
    },
}

impl Server {
    /// Listens; nothing is answered before [`Self::run`].
    pub async fn listen(handler: RequestHandler, address: Address) -> Result<Self, HttpError> {
        let (listener, other) = bind(&address).await?;
        let at = listener.local_addr().map_err(|source| HttpError::Listen { at: address.listen, source })?;
        let tls = match &address.way {
            Way::Tls(tls) => {
                let places = Arc::new(Semaphore::new(HANDSHAKES));
                Some(Handshake { acceptor: tls.acceptor(), places })
            }
            Way::Loopback | Way::Proxy(_) => None,
        };
        let state = AppState::new(Arc::new(handler), at.port(), Names::new(address.way, at));
        Ok(Self { listener, other, state: Arc::new(state), tls })
    }

    /// The origin under which browsers find it.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.state.names.origin
    }

    /// The valid tokens and cookies.
    #[must_use]
    pub fn tokens(&self) -> Vec<Key> {
        crate::http::app_state::tokens(&self.state.handler)
    }

    /// The origin under which programs on this machine find it, that know nothing of names as browsers do.
    #[must_use]
    pub fn direct(&self) -> &str {
        &self.state.names.direct
    }

    /// An address that lets one browser in, once and for ten minutes.
    #[must_use]
    pub fn invitation(&self) -> String {
        format!("{}/open?code={}", self.url(), self.state.make_code())
    }

    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let at_other = async {
            match &self.other {
                Some(other) => other.accept().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            accepted = self.listener.accept() => accepted,
            accepted = at_other => accepted,
        }
    }

    /// Serves until it is to stop; running responses then get a grace time.
    pub async fn run(self, mut stop: Stop) {
        let app = app(&self.state, stop.clone());
        let (places, mut open) = (Arc::new(Semaphore::new(MOST)), JoinSet::new());
        let connections = Arc::new(Connections::default());
        loop {
            if places.available_permits() == 0 {
                connections.make_room();
            }
            // Take a connection slot first; without one no connection is accepted.
            let place = tokio::select! {
                Ok(place) = Arc::clone(&places).acquire_owned() => place,
                () = stopped(&mut stop) => break,
            };
            let (stream, from) = tokio::select! {
                accepted = self.accept() => match accepted {
                    Ok(accepted) => accepted,
                    // The client is gone already, or the system has no descriptors left just now.
                    Err(_) => { tokio::time::sleep(AGAIN).await; continue }
                },
                () = stopped(&mut stop) => break,
            };
            let (app, tls, stop) = (app.clone(), self.tls.clone(), stop.clone());
            // All connections through a proxy come from one address.
            let Some(slot) = connections.enter(from.ip(), self.tls.is_some()) else { continue };
            let number = slot.number();
            let close = open.spawn(async move {
                answer(stream, tls, (app, Arc::new(slot)), stop).await;
                drop(place);
            });
            connections.can_close(number, close);
            // Forget finished connections.
            while open.try_join_next().is_some() {}
        }
        drop((self.listener, self.other));
        let _ = timeout(GRACE, async { while open.join_next().await.is_some() {} }).await;
    }
}

/// Listens at the address, and at the other one that its name resolves to, so that no other process can listen there.
async fn bind(address: &Address) -> Result<(TcpListener, Option<TcpListener>), HttpError> {
    let mut tries = TRIES;
    loop {
        tries -= 1;
        let failed = |source| HttpError::Listen { at: address.listen, source };
        let listener = TcpListener::bind(address.listen).await.map_err(failed)?;
        let at = listener.local_addr().map_err(failed)?;
        let Some(other) = address.other(at.port()) else { return Ok((listener, None)) };
        match TcpListener::bind(other).await {
            Ok(other) => return Ok((listener, Some(other))),
            // Another that is free here may be free there too.
            Err(error) if is_taken(&error) && address.listen.port() == 0 && tries > 0 => {}
            Err(source) if is_taken(&source) => {
                return Err(HttpError::Taken { at: other, name: NAME, source });
            }
            // The machine has only one of them, and browsers go there.
            Err(_) => return Ok((listener, None)),
        }
    }
}

fn is_taken(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::AddrInUse | ErrorKind::PermissionDenied)
}

/// All routes, with their checks in front.
fn app(state: &Arc<AppState>, stop: Stop) -> Router {
    let tools = mcp::over_http(Arc::clone(&state.handler));
    let inside = routes::router()
        .merge(pages::router())
        .method_not_allowed_fallback(failure::no_method)
        .nest_service("/mcp", tools)
        .layer(middleware::from_fn(|request, next| guard::take_in(guard::LARGEST, request, next)))
        .layer(middleware::from_fn_with_state(Arc::clone(state), guard::admit));
    let same_origin = CsrfLayer::new();
    // The origin was validated before.
    let same_origin = same_origin.clone().add_trusted_origin(&state.names.origin).unwrap_or(same_origin);
    let foreign = |_| {
        let error = "the request comes from another origin";
        Failure::new(axum::http::StatusCode::FORBIDDEN, error).into_response()
    };
    let broke = |_: Box<dyn std::any::Any + Send>| {
        let error = "refrain broke off in the middle of this";
        Failure::new(axum::http::StatusCode::INTERNAL_SERVER_ERROR, error).into_response()
    };
    // Without authentication only small bodies are read: a token.
    let outside = Router::new()
        .merge(pages::assets())
        .route("/login", get(login::show).post(login::login))
        .route("/open", get(login::open))
        .method_not_allowed_fallback(failure::no_method)
        .layer(middleware::from_fn(|request, next| guard::take_in(guard::LARGEST_OUTSIDE, request, next)));
    inside
        .merge(outside)
        .fallback(|| async { Failure::nothing() })
        .layer(Extension(stop))
        .layer(same_origin.with_rejection_response(foreign))
        .layer(middleware::from_fn_with_state(Arc::clone(state), guard::check_host))
        .layer(CatchPanicLayer::custom(broke))
        .layer(middleware::from_fn(failure::speak))
        .layer(middleware::map_response(guard::seal))
        .with_state(Arc::clone(state))
}

/// Serves one connection to its end; one without TLS is closed at once if TLS is required.
async fn answer(
    stream: TcpStream,
    tls: Option<Handshake>,
    app: (Router, Arc<ConnectionSlot>),
    mut stop: Stop,
) {
    // Responses are small and must arrive at once.
    let _ = stream.set_nodelay(true);
    let Some(Handshake { acceptor, places }) = tls else { return converse(stream, app, stop).await };
    let agreed = async {
        let _place = places.acquire().await;
        acceptor.accept(stream).await
    };
    let agreed = tokio::select! {
        agreed = timeout(HANDSHAKE, agreed) => agreed,
        () = stopped(&mut stop) => return,
    };
    if let Ok(Ok(stream)) = agreed {
        converse(stream, app, stop).await;
    }
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    (app, slot): (Router, Arc<ConnectionSlot>),
    mut stop: Stop,
) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(LARGEST_HEAD);
    let app = TowerToHyperService::new(app);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Arc::clone(&slot));
        app.call(request)
    });
    let talk = builder.serve_connection(TokioIo::new(WriteTimeout::new(stream, TAKE)), service);
    let mut talk = std::pin::pin!(talk);
    // The result is ignored: the client is gone.
    tokio::select! {
        _ = talk.as_mut() => {}
        () = stopped(&mut stop) => {
            talk.as_mut().graceful_shutdown();
            let _ = talk.await;
        }
    }
}
