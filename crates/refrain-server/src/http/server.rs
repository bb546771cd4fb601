//! Listening, and giving each connection its bounds. Axum's own loop has no clock for a client that begins a request and
//! never ends it, so the connections are driven here.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Extension, Router, middleware};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::csrf::CsrfLayer;

use super::door::Door;
use super::failure::Failure;
use super::{Address, guard, login, pages, routes};
use crate::desk::Desk;
use crate::mcp;

/// How many connections there may be at a time: others wait in the system's queue.
const MOST: usize = 256;
/// How long a client may take for the head of a request, and be silent between two.
const HEAD: Duration = Duration::from_secs(20);
/// How much of a head is kept.
const LARGEST_HEAD: usize = 64 << 10;
/// How long what is being answered may take once the server is to stop.
const GRACE: Duration = Duration::from_secs(3);
/// After how long accepting is tried again where the system has nothing left.
const AGAIN: Duration = Duration::from_millis(200);

/// Becomes true when all that runs beside the server is to stop.
pub type Stop = watch::Receiver<bool>;

/// Comes back once it is time to stop.
pub(super) async fn stopped(stop: &mut Stop) {
    // Whoever would say so may be gone.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    at: SocketAddr,
    door: Arc<Door>,
}

/// Why it does not.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The address cannot be had.
    #[error("cannot listen on {at}")]
    Listen {
        /// Which.
        at: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}

impl Server {
    /// Listens; nothing is answered before [`Self::run`].
    ///
    /// # Errors
    /// [`HttpError::Listen`].
    pub async fn listen(desk: Desk, address: Address) -> Result<Self, HttpError> {
        let failed = |source| HttpError::Listen { at: address.listen, source };
        let listener = TcpListener::bind(address.listen).await.map_err(failed)?;
        let at = listener.local_addr().map_err(failed)?;
        let door = Door::new(Arc::new(desk), at, address.public);
        Ok(Self { listener, at, door: Arc::new(door) })
    }

    /// The origin under which it is found.
    #[must_use]
    pub fn url(&self) -> String {
        self.door.public.clone().unwrap_or_else(|| format!("http://{}", self.at))
    }

    /// An address that lets one browser in, once and for ten minutes.
    #[must_use]
    pub fn invitation(&self) -> String {
        format!("{}/open?code={}", self.url(), self.door.make_code())
    }

    /// Answers until it is to stop; what is being answered then gets a moment.
    pub async fn run(self, mut stop: Stop) {
        let app = app(&self.door, stop.clone());
        let (places, mut open) = (Arc::new(Semaphore::new(MOST)), JoinSet::new());
        loop {
            // A place first: without one nobody is asked in.
            let place = tokio::select! {
                Ok(place) = Arc::clone(&places).acquire_owned() => place,
                () = stopped(&mut stop) => break,
            };
            let stream = tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    // The client is gone already, or the system has no descriptors left just now.
                    Err(_) => { tokio::time::sleep(AGAIN).await; continue }
                },
                () = stopped(&mut stop) => break,
            };
            let (app, stop) = (app.clone(), stop.clone());
            open.spawn(async move {
                converse(stream, app, stop).await;
                drop(place);
            });
            // Those that are over are let go of.
            while open.try_join_next().is_some() {}
        }
        drop(self.listener);
        let _ = tokio::time::timeout(GRACE, async { while open.join_next().await.is_some() {} }).await;
    }
}

/// All that is answered, behind all that is asked before.
fn app(door: &Arc<Door>, stop: Stop) -> Router {
    let tools = mcp::over_http(Arc::clone(&door.desk));
    let inside = routes::router()
        .merge(pages::router(door))
        .nest_service("/mcp", tools)
        .layer(middleware::from_fn_with_state(Arc::clone(door), guard::admit));
    let same_origin = door.public.iter().fold(CsrfLayer::new(), |layer, origin| {
        // It was held against what an origin is.
        layer.clone().add_trusted_origin(origin).unwrap_or(layer)
    });
    let foreign = |_| {
        let error = "the request comes from another origin";
        Failure::new(axum::http::StatusCode::FORBIDDEN, error).into_response()
    };
    let broke = |_: Box<dyn std::any::Any + Send>| {
        let error = "refrain broke off in the middle of this";
        Failure::new(axum::http::StatusCode::INTERNAL_SERVER_ERROR, error).into_response()
    };
    Router::new()
        .merge(inside)
        .merge(pages::assets())
        .route("/login", get(login::show).post(login::login))
        .route("/open", get(login::open))
        .fallback(|| async { Failure::nothing() })
        .layer(Extension(stop))
        .layer(middleware::from_fn(guard::take_in))
        .layer(same_origin.with_rejection_response(foreign))
        .layer(middleware::from_fn_with_state(Arc::clone(door), guard::check_host))
        .layer(CatchPanicLayer::custom(broke))
        .layer(middleware::map_response(guard::seal))
        .with_state(Arc::clone(door))
}

/// One connection, to its end.
async fn converse(stream: TcpStream, app: Router, mut stop: Stop) {
    // What is answered is small, and is to be there at once.
    let _ = stream.set_nodelay(true);
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(LARGEST_HEAD);
    let talk = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(app));
    let mut talk = std::pin::pin!(talk);
    // However it ends, there is nobody to be told.
    tokio::select! {
        _ = talk.as_mut() => {}
        () = stopped(&mut stop) => {
            talk.as_mut().graceful_shutdown();
            let _ = talk.await;
        }
    }
}
