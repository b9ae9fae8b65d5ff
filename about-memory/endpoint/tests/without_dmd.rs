//! An endpoint in a program without DMD.

use memory_endpoint::Endpoint;

memory_reporter::global_allocator!(std::alloc::System);

/// There is only one test, because the endpoint answers one request at a time.
#[test]
fn profiles_need_dmd_and_the_rest_does_not() {
    let endpoint = Endpoint::new();
    for path in ["/debug/pprof/heap", "/debug/pprof/allocs"] {
        for query in ["", "seconds=1"] {
            let response = endpoint.respond(path, query, "");
            assert_eq!(response.status, 503);
            let line = String::from_utf8_lossy(&response.body);
            assert!(
                line.starts_with("DMD records nothing in this process: wrap the global allocator"),
                "{line}"
            );
        }
    }
    for path in ["/metrics", "/memory/report"] {
        assert_eq!(endpoint.respond(path, "", "").status, 200, "{path}");
    }
}
