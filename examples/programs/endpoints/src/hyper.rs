//! The endpoint on hyper alone. Any server works like this: it passes path, query, `Accept` and `Host` on, and sends
//! the answer.

use std::convert::Infallible;
use std::sync::Arc;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, HOST};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use memory_endpoint::{Endpoint, GetRequest};
use tokio::net::TcpListener;

// DMD records if the variable `DMD` is set.
memory_reporter::global_allocator!(dmd::Dmd<std::alloc::System>: dmd::Dmd::new(std::alloc::System));

async fn answer(endpoint: Arc<Endpoint>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let status = |status: StatusCode| {
        let mut response = Response::new(Full::default());
        *response.status_mut() = status;
        response
    };
    if request.method() != Method::GET {
        return Ok(status(StatusCode::METHOD_NOT_ALLOWED));
    }
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or_default().to_owned();
    let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let (accept, host) = (header(ACCEPT), header(HOST));
    // An answer takes some time, so a thread that may block computes the answer.
    let answered = tokio::task::spawn_blocking(move || {
        endpoint.answer(&GetRequest::new(&path, &query).accept(&accept).host(&host))
    })
    .await;
    let Ok(answered) = answered else { return Ok(status(StatusCode::SERVICE_UNAVAILABLE)) };
    let mut response = Response::builder().status(answered.status);
    for (name, value) in answered.headers {
        response = response.header(name, value);
    }
    let response = response.body(Full::new(Bytes::from(answered.body)));
    Ok(response.unwrap_or_else(|_| status(StatusCode::INTERNAL_SERVER_ERROR)))
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:9464".to_owned());
    let admin = TcpListener::bind(address).await?;
    println!("admin http://{}", admin.local_addr()?);
    let endpoint = Arc::new(Endpoint::new());
    loop {
        let (stream, _) = admin.accept().await?;
        let endpoint = Arc::clone(&endpoint);
        let service = service_fn(move |request| answer(Arc::clone(&endpoint), request));
        let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        tokio::spawn(async move { drop(connection.await) });
    }
}
