//! The answers as a router of axum.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ::axum::Router;
use ::axum::extract::Request;
use ::axum::http::{HeaderName, HeaderValue, StatusCode, header};
use ::axum::response::Response;
use ::axum::routing::get;

use crate::{Endpoint, GetRequest, PATHS, response};

/// Makes a router with a `GET` for each of [`PATHS`]. It may be merged into another router, or nested below a prefix.
/// Mount it on a port for administrators only: see the [crate](crate#who-may-ask).
///
/// Answers are made on threads of the runtime that may block, so the runtime must be tokio. A difference whose client
/// is gone ends. A request with an unknown name in `Host` gets the status 403
/// ([`EndpointOptions::host_name`](crate::EndpointOptions::host_name)).
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
    PATHS.iter().copied().fold(Router::new(), |router, path| {
        let endpoint = Arc::clone(&endpoint);
        router.route(path, get(move |request| answer(endpoint, path, request)))
    })
}

async fn answer(endpoint: Arc<Endpoint>, path: &'static str, request: Request) -> Response {
    let query = request.uri().query().unwrap_or_default().to_owned();
    let values = request.headers().get_all(header::ACCEPT).iter();
    let accept: Vec<String> =
        values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect();
    let host = host_of(&request);
    let client = WaitingClient(Arc::new(AtomicBool::new(true)));
    let waits = Arc::clone(&client.0);
    let answered = tokio::task::spawn_blocking(move || {
        let accept = accept.join(",");
        let is_wanted = || waits.load(Ordering::Relaxed);
        let asked = GetRequest::new(path, &query).accept(&accept).wanted(&is_wanted);
        endpoint.answer(&host.as_deref().map_or(asked, |host| asked.host(host)))
    })
    .await;
    drop(client);
    match answered {
        Ok(answered) => converted(answered),
        // The runtime is shutting down.
        Err(_) => {
            let mut response = Response::default();
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            response
        }
    }
}

/// The name under which the client reaches the server. In HTTP/2 the name is a part of the request's target. Bytes that
/// are not text become a name that no server accepts.
fn host_of(request: &Request) -> Option<String> {
    let header = request.headers().get(header::HOST).map(|host| String::from_utf8_lossy(host.as_bytes()));
    let authority = || request.uri().authority().map(|authority| authority.as_str().to_owned());
    header.map(|host| host.into_owned()).or_else(authority)
}

/// A client that waits for an answer. If the client is gone, the server drops this value with the future of the answer.
struct WaitingClient(Arc<AtomicBool>);

impl Drop for WaitingClient {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

fn converted(answered: response::EndpointResponse) -> Response {
    let response::EndpointResponse { status, headers, body } = answered;
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
