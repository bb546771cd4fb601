//! Single flight: requests for the same page share one response while it is made, because every page that shows a loop
//! reloads at the same moment. A response begun before a request arrived is not used for it: it may miss the event that
//! caused the request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, response};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::failure::Failure;

/// The longest page that is kept for others, in bytes.
const LONGEST: usize = 64 << 20;

/// The responses being made, by request URI.
#[derive(Debug, Default)]
pub(super) struct Copies(Mutex<HashMap<String, Desired>>);

/// Locked while the response is made; holds the last response.
type Desired = Arc<tokio::sync::Mutex<Option<CachedResponse>>>;

#[derive(Debug)]
struct CachedResponse {
    begun: Instant,
    head: response::Parts,
    body: Bytes,
}

impl Copies {
    fn of(&self, what: &str) -> Desired {
        let mut desired = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Drops responses that no request waits for.
        desired.retain(|_, it| Arc::strong_count(it) > 1);
        Arc::clone(desired.entry(what.to_owned()).or_default())
    }
}

impl CachedResponse {
    fn copy(&self) -> Response {
        Response::from_parts(self.head.clone(), Body::from(self.body.clone()))
    }
}

/// Answers with the response that is already being made for another request.
pub(super) async fn share(State(copies): State<Arc<Copies>>, request: Request, next: Next) -> Response {
    let asked = Instant::now();
    let what = request.uri().path_and_query().map(|it| it.as_str().to_owned());
    let Some(what) = what.filter(|_| *request.method() == Method::GET) else {
        return next.run(request).await;
    };
    let desired = copies.of(&what);
    let mut made = desired.lock().await;
    if let Some(made) = made.as_ref().filter(|made| made.begun >= asked) {
        return made.copy();
    }
    let begun = Instant::now();
    let (head, body) = next.run(request).await.into_parts();
    match to_bytes(body, LONGEST).await {
        Ok(body) => made.insert(CachedResponse { begun, head, body }).copy(),
        Err(error) => Failure::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::routing::get;
    use axum::{Router, middleware};
    use hyper::service::Service;
    use hyper_util::service::TowerToHyperService;
    use tokio::sync::Semaphore;

    use super::*;

    /// The answers to three requests, two of them sent while the first is answered, and how often an answer was made.
    async fn answers(method: Method) -> (Vec<String>, usize) {
        let (made, free) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
        let (count, wait) = (Arc::clone(&made), Arc::clone(&free));
        let make = move || async move {
            let number = count.fetch_add(1, Ordering::Relaxed) + 1;
            let _free = wait.acquire().await;
            number.to_string()
        };
        let router = Router::new().route("/", get(make.clone()).post(make));
        let app = TowerToHyperService::new(
            router.layer(middleware::from_fn_with_state(Arc::<Copies>::default(), share)),
        );
        let ask = || async {
            let request = Request::builder().method(method.clone()).uri("/").body(Body::empty()).unwrap();
            let body = app.call(request).await.unwrap().into_body();
            String::from_utf8(to_bytes(body, usize::MAX).await.unwrap().to_vec()).unwrap()
        };
        let (first, second, third, ()) = tokio::join!(ask(), ask(), ask(), async { free.add_permits(3) });
        (vec![first, second, third], made.load(Ordering::Relaxed))
    }

    #[tokio::test]
    async fn a_response_begun_before_a_request_does_not_answer_it() {
        let (answers, made) = answers(Method::GET).await;
        assert_eq!(answers, ["1", "2", "2"]);
        assert_eq!(made, 2, "who asked while it was made shares the next");
    }

    #[tokio::test]
    async fn a_page_without_end_is_refused() {
        let router = Router::new().route("/", get(|| async { vec![b'x'; LONGEST + 1] }));
        let app = TowerToHyperService::new(
            router.layer(middleware::from_fn_with_state(Arc::<Copies>::default(), share)),
        );
        let request = Request::builder().uri("/").body(Body::empty()).unwrap();
        assert_eq!(app.call(request).await.unwrap().status(), StatusCode::INTERNAL_SERVER_ERROR);
    }

    #[tokio::test]
    async fn a_request_that_changes_something_is_never_shared() {
        let (mut answers, made) = answers(Method::POST).await;
        answers.sort();
        assert_eq!((answers, made), (["1", "2", "3"].map(str::to_owned).to_vec(), 3));
    }
}
