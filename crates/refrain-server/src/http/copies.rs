//! One answer for all who ask for the same while it is made: whatever happens to a loop, every page that shows it is read anew
//! at the same moment. An answer that was begun before somebody asked is none for them: it may not show what they heard of.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, response};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::door::Door;
use super::failure::Failure;

/// What is being made, by what it is asked for with.
#[derive(Debug, Default)]
pub(super) struct Copies(Mutex<HashMap<String, Desired>>);

/// Held while it is made; what was made last.
type Desired = Arc<tokio::sync::Mutex<Option<Made>>>;

#[derive(Debug)]
struct Made {
    begun: Instant,
    head: response::Parts,
    body: Bytes,
}

impl Copies {
    fn of(&self, what: &str) -> Desired {
        let mut desired = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Nothing is kept that nobody waits for.
        desired.retain(|_, it| Arc::strong_count(it) > 1);
        Arc::clone(desired.entry(what.to_owned()).or_default())
    }
}

impl Made {
    fn copy(&self) -> Response {
        Response::from_parts(self.head.clone(), Body::from(self.body.clone()))
    }
}

/// Answers with what is made already for somebody who asked at the same time.
pub(super) async fn share(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    let asked = Instant::now();
    let what = request.uri().path_and_query().map(|it| it.as_str().to_owned());
    let Some(what) = what.filter(|_| *request.method() == Method::GET) else {
        return next.run(request).await;
    };
    let desired = door.copies.of(&what);
    let mut made = desired.lock().await;
    if let Some(made) = made.as_ref().filter(|made| made.begun >= asked) {
        return made.copy();
    }
    let begun = Instant::now();
    let (head, body) = next.run(request).await.into_parts();
    match to_bytes(body, usize::MAX).await {
        Ok(body) => made.insert(Made { begun, head, body }).copy(),
        Err(error) => Failure::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
