//! The answers as a router of axum.

use std::sync::Arc;

use ::axum::Router;
use ::axum::extract::Request;
use ::axum::http::{HeaderName, HeaderValue, StatusCode, header};
use ::axum::response::Response;
use ::axum::routing::get;

use crate::{Endpoint, PATHS, response};

/// A router with a `GET` for each of [`PATHS`]. It may be merged into another, or nested below a prefix. Mount it on a
/// port for administrators only: see the [crate](crate#who-may-ask).
///
/// Answers are made on the runtime's threads that may block, so the runtime is tokio's.
///
/// ```
/// use std::sync::Arc;
///
/// use memory_endpoint::{Endpoint, router};
///
/// let admin: axum::Router = router(Arc::new(Endpoint::new()));
/// # drop(admin);
/// // axum::serve(TcpListener::bind("127.0.0.1:9464").await?, admin).await?;
/// ```
pub fn router<S: Clone + Send + Sync + 'static>(endpoint: Arc<Endpoint>) -> Router<S> {
    PATHS.into_iter().fold(Router::new(), |router, path| {
        let endpoint = Arc::clone(&endpoint);
        router.route(path, get(move |request| answer(endpoint, path, request)))
    })
}

async fn answer(endpoint: Arc<Endpoint>, path: &'static str, request: Request) -> Response {
    let query = request.uri().query().unwrap_or_default().to_owned();
    let values = request.headers().get_all(header::ACCEPT).iter();
    let accept: Vec<String> =
        values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect();
    let answered =
        tokio::task::spawn_blocking(move || endpoint.respond(path, &query, &accept.join(","))).await;
    match answered {
        Ok(answered) => converted(answered),
        // The runtime ends.
        Err(_) => {
            let mut response = Response::default();
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            response
        }
    }
}

fn converted(answered: response::Response) -> Response {
    let response::Response { status, headers, body } = answered;
    let mut response = Response::new(body.into());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in headers {
        // All values are ASCII: numbers and constants.
        if let Ok(value) = HeaderValue::try_from(value) {
            response.headers_mut().insert(HeaderName::from_static(name), value);
        }
    }
    response
}
