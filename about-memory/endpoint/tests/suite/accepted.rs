//! The form of metrics that a client gets.

use memory_endpoint::Endpoint;

use crate::program;

#[test]
fn a_client_gets_the_form_that_it_prefers() {
    let _alone = program::alone();
    let endpoint = Endpoint::new();
    let open = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let plain = "text/plain; version=0.0.4; charset=utf-8";
    for (accept, expected) in [
        ("", plain),
        ("*/*", plain),
        ("text/html,*/*;q=0.8", plain),
        ("text/plain", plain),
        ("application/openmetrics-text", open),
        ("application/OpenMetrics-Text; Version=\"1.0.0\"", open),
        // The headers of Prometheus 2 and 3.
        (
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
             text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            open,
        ),
        (
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=1.0.0;q=0.5,\
             text/plain;version=0.0.4;q=0.4,*/*;q=0.2",
            open,
        ),
        ("text/plain;version=0.0.4;q=0.5,application/openmetrics-text;q=0.1", plain),
        ("application/openmetrics-text;version=0.0.1,text/plain;q=0.2", plain),
        ("application/openmetrics-text;q=0, text/plain;q=0.1", plain),
        ("application/openmetrics-text;q=much", plain),
        (",;=;,q=", plain),
    ] {
        let response = endpoint.respond("/metrics", "", accept);
        assert_eq!(response.header("content-type"), Some(expected), "{accept}");
        let text = String::from_utf8(program::body(response)).unwrap();
        assert_eq!(text.ends_with("\n# EOF\n"), expected == open, "{accept}");
    }
}
