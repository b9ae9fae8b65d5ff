//! The router of axum.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, Response, StatusCode};
use memory_endpoint::{Endpoint, EndpointOptions, router};
use tower_service::Service as _;

use crate::differences::Growing;
use crate::program::{self, by_reporter, names_bytes, profile};

fn ask(router: &mut Router, request: Request<Body>) -> (Response<()>, Vec<u8>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    runtime.block_on(async {
        let (parts, body) = router.call(request).await.unwrap().into_parts();
        (Response::from_parts(parts, ()), to_bytes(body, 1 << 26).await.unwrap().to_vec())
    })
}

fn get(path: &str, accept: &'static str) -> Request<Body> {
    Request::get(path).header("accept", accept).body(Body::empty()).unwrap()
}

#[test]
fn a_router_passes_answers_on() {
    let _alone = program::alone();
    let admin: Router = router(Arc::new(Endpoint::new()));
    let mut nested = Router::new().nest("/admin", admin.clone());
    let mut admin = admin;
    let (response, body) = ask(&mut admin, get("/metrics", "application/openmetrics-text"));
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(
        response.headers()["content-type"],
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    );
    assert!(body.ends_with(b"\n# EOF\n"));

    let (response, body) = ask(&mut nested, get("/admin/debug/pprof/heap?debug=0", "*/*"));
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(by_reporter(&profile(&body))["explicit/names"], names_bytes());

    let (response, body) = ask(&mut admin, get("/debug/pprof/heap?debug=2", "*/*"));
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert_eq!(response.headers()["x-go-pprof"], "1");
    assert!(body.starts_with(b"/debug/pprof/heap: debug=2"));

    let post = Request::post("/metrics").body(Body::empty()).unwrap();
    assert_eq!(ask(&mut admin, post).0.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(ask(&mut admin, get("/", "*/*")).0.status(), StatusCode::NOT_FOUND);
}

/// A page in a browser that has rebound its own name to this machine sends that name in `Host`.
#[test]
fn a_foreign_host_is_refused() {
    let _alone = program::alone();
    let status = |options: EndpointOptions, host: &str| {
        let mut admin: Router = router(Arc::new(Endpoint::with_options(options)));
        let request =
            Request::get("/debug/pprof/heap?debug=2").header("host", host).body(Body::empty()).unwrap();
        let (response, body) = ask(&mut admin, request);
        assert!(body.starts_with(b"the header Host") == (response.status() == 403), "{host}");
        response.status().as_u16()
    };
    // A request with an accepted host is then rejected for its query.
    for (host, expected) in [
        ("127.0.0.1:9464", 400),
        ("127.0.0.1", 400),
        ("localhost:9464", 400),
        ("LOCALHOST", 400),
        ("[::1]:9464", 400),
        ("192.0.2.7:9464", 400),
        ("evil.example", 403),
        ("evil.example:9464", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost.evil.example:9464", 403),
        ("localhost6", 403),
        ("0.0.0.0:9464", 403),
        ("[::]:9464", 403),
        ("::1", 403),
        ("127.1", 403),
        ("", 403),
        ("127.0.0.1:x", 403),
        ("app.default.svc:9464", 403),
    ] {
        assert_eq!(status(EndpointOptions::new(), host), expected, "{host}");
    }
    assert_eq!(status(EndpointOptions::new().host_name("app.default.svc"), "App.default.svc:9464"), 400);
    assert_eq!(status(EndpointOptions::new().host_name("app.default.svc"), "evil.example"), 403);
    assert_eq!(status(EndpointOptions::new().any_host(true), "evil.example"), 400);
}

/// The server drops the future of an answer when the client is gone.
#[test]
fn a_client_that_goes_leaves_the_turn() {
    let _alone = program::alone();
    let growing = Arc::new(Growing::default());
    let _registered = memory_reporter::register_strong(growing.clone());
    let endpoint = Arc::new(Endpoint::new());
    let mut admin: Router = router(Arc::clone(&endpoint));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let future = admin.call(get("/debug/pprof/heap?seconds=300", "*/*"));
    let asked = runtime.spawn(async move { drop(future.await) });
    let difference = || endpoint.respond("/debug/pprof/heap", "seconds=1", "");
    // Waits until the request has started its first dump. From then on the request holds the turn.
    while growing.runs.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    assert_eq!(difference().status, 429);
    asked.abort();
    while difference().status == 429 {
        std::thread::yield_now();
    }
}
