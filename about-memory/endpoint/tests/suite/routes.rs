//! The router of axum.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, Response, StatusCode};
use memory_endpoint::{Endpoint, router};
use tower_service::Service as _;

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
