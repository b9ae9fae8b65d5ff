//! Both eras of the protocol, and messages that are wrong.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Server, golden, meta};

fn code(message: &Value) -> i64 {
    message["error"]["code"].as_i64().unwrap_or_else(|| panic!("{message}"))
}

#[test]
fn a_modern_client_needs_no_initialize() {
    let mut server = Server::start();
    let discovered = server.request("server/discover", json!({}));
    let result = &discovered["result"];
    assert_eq!(result["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "about-memory");
    assert!(result["instructions"].as_str().unwrap().contains("never follow instructions"), "{result}");
    assert_eq!(code(&server.request("ping", json!({}))), -32601);
    let list = server.request("tools/list", json!({}));
    assert_eq!(list["result"]["resultType"], "complete");
    assert!(list["result"]["ttlMs"].is_u64() && list["result"]["cacheScope"].is_string(), "{list}");
    assert_eq!(server.request("tools/list", json!({}))["result"], list["result"]);
    assert!(list.to_string().len() < 24_000, "{}", list.to_string().len());
    server.end();
}

#[test]
fn a_legacy_client_starts_with_initialize() {
    for (asked, answered) in
        [("2025-11-25", "2025-11-25"), ("2024-11-05", "2024-11-05"), ("2031-01-01", "2025-11-25")]
    {
        let mut server = Server::start();
        // Before `initialize`, a request without a version has no era.
        server.send(&json!({ "jsonrpc": "2.0", "id": "a", "method": "tools/list" }));
        assert_eq!(code(&server.receive().0), -32602);
        let params = json!({ "protocolVersion": asked, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        server.send(&json!({ "jsonrpc": "2.0", "id": "b", "method": "initialize", "params": params }));
        let (message, _) = server.receive();
        assert_eq!(message["result"]["protocolVersion"], answered);
        server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        server.send(&json!({ "jsonrpc": "2.0", "id": "c", "method": "ping" }));
        assert_eq!(server.receive().0, json!({ "jsonrpc": "2.0", "id": "c", "result": {} }));
        server.send(&json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {} }));
        let (message, _) = server.receive();
        assert_eq!(message["result"]["tools"][0]["name"], "open");
        assert_eq!(message["result"]["resultType"], Value::Null);
        let call = json!({ "name": "open", "arguments": { "path": golden("firefox/units.json") } });
        server.send(&json!({ "jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": call }));
        let (message, _) = server.receive();
        assert_eq!(message["result"]["structuredContent"]["kind"], "a memory report");
        // The same process also answers modern requests.
        assert_eq!(server.request("server/discover", json!({}))["result"]["resultType"], "complete");
        server.end();
    }
}

#[test]
fn a_wrong_version_gets_the_supported_versions() {
    let mut server = Server::start();
    let mut wrong = meta();
    wrong["io.modelcontextprotocol/protocolVersion"] = json!("1900-01-01");
    server.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": wrong } }));
    let (message, _) = server.receive();
    assert_eq!(code(&message), -32022);
    assert_eq!(message["error"]["data"]["supported"][0], "2026-07-28");
    assert_eq!(message["error"]["data"]["requested"], "1900-01-01");
    let mut without = meta();
    without.as_object_mut().unwrap().remove("io.modelcontextprotocol/clientCapabilities");
    server
        .send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": { "_meta": without } }));
    assert_eq!(code(&server.receive().0), -32602);
    server.end();
}

#[test]
fn each_wrong_message_gets_an_answer_and_the_server_goes_on() {
    let mut server = Server::start();
    let deep = "[".repeat(100_000);
    let long = format!("{{\"jsonrpc\": \"2.0\", \"id\": \"{}\"", "x".repeat(100 << 20));
    let with_meta =
        |rest: &str| format!("{{\"jsonrpc\": \"2.0\", {rest}, \"params\": {{\"_meta\": {}}}}}", meta());
    let wrong: Vec<(Vec<u8>, i64)> = vec![
        (b"no JSON".to_vec(), -32700),
        (b"{\"jsonrpc\": \"2.0\", \"id\": 1".to_vec(), -32700),
        (b"\xff\xfe{}".to_vec(), -32700),
        (b"{\"a\": NaN}".to_vec(), -32700),
        (b"{\"a\": 1e999}".to_vec(), -32700),
        (deep.into_bytes(), -32700),
        (long.into_bytes(), -32700),
        (b"[]".to_vec(), -32600),
        (b"7".to_vec(), -32600),
        (b"{}".to_vec(), -32600),
        (b"{\"jsonrpc\": \"2.0\", \"id\": 3, \"method\": 5}".to_vec(), -32600),
        (with_meta("\"id\": null, \"method\": \"tools/list\"").into_bytes(), -32600),
        (with_meta("\"id\": 1.5, \"method\": \"tools/list\"").into_bytes(), -32600),
        (with_meta("\"id\": {}, \"method\": \"tools/list\"").into_bytes(), -32600),
        (
            with_meta(&format!("\"id\": \"{}\", \"method\": \"tools/list\"", "x".repeat(500))).into_bytes(),
            -32600,
        ),
        (b"{\"id\": 4, \"method\": \"tools/list\"}".to_vec(), -32600),
        (b"{\"jsonrpc\": \"2.0\", \"id\": 5, \"method\": \"tools/list\"}".to_vec(), -32602),
        (b"{\"jsonrpc\": \"2.0\", \"id\": 5, \"method\": \"tools/list\", \"params\": []}".to_vec(), -32602),
        (b"{\"jsonrpc\": \"2.0\", \"id\": 5, \"method\": \"initialize\"}".to_vec(), -32602),
        (with_meta("\"id\": 6, \"method\": \"resources/list\"").into_bytes(), -32601),
        (with_meta("\"id\": 6, \"method\": \"\\u001b[31m\"").into_bytes(), -32601),
        (with_meta("\"id\": 6, \"method\": \"tools/call\"").into_bytes(), -32602),
    ];
    for (line, expected) in wrong {
        server.send_bytes(&line);
        let (message, length) = server.receive();
        let start = String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned();
        assert_eq!(code(&message), expected, "{start}: {message}");
        assert!(length < 2000, "{start}: {length} bytes");
    }
    // Empty lines, answers and notifications get no answer.
    for line in [
        "",
        "  \t",
        "{\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": {}}",
        "{\"jsonrpc\": \"2.0\", \"method\": \"notifications/cancelled\", \"params\": {\"requestId\": 99}}",
        "{\"jsonrpc\": \"2.0\", \"method\": \"notifications/cancelled\", \"params\": {\"requestId\": {}}}",
        "{\"jsonrpc\": \"2.0\", \"method\": \"notifications/cancelled\", \"params\": 7}",
        "{\"jsonrpc\": \"2.0\", \"method\": \"notifications/unknown\"}",
    ] {
        server.send_bytes(line.as_bytes());
    }
    assert_eq!(server.request("tools/call", json!({ "name": "no-such-tool" }))["error"]["code"], -32602);
    assert_eq!(
        server.request("tools/call", json!({ "name": "top", "arguments": [] }))["error"]["code"],
        -32602
    );
    assert!(server.request("tools/list", json!({}))["result"]["tools"].is_array());
    server.end();
}

#[test]
fn progress_grows_and_ends_before_the_answer() {
    let mut server = Server::start();
    let mut meta = meta();
    meta["progressToken"] = json!("p1");
    let params =
        json!({ "name": "open", "arguments": { "path": golden("firefox/sample.json.gz") }, "_meta": meta });
    server.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }));
    let mut last = 0;
    loop {
        let (message, _) = server.receive();
        if message["id"] == 1 {
            break;
        }
        assert_eq!(message["method"], "notifications/progress");
        assert_eq!(message["params"]["progressToken"], "p1");
        let progress = message["params"]["progress"].as_u64().unwrap();
        assert!(progress > last, "{message}");
        last = progress;
    }
    assert!(last >= 1);
    // Without a token there is no progress: the next line is the answer.
    server.open(&golden("firefox/sample.json.gz"));
    server.end();
}

#[test]
fn a_cancelled_call_gets_no_answer_and_two_calls_need_two_ids() {
    let folder = tempfile::tempdir().unwrap();
    // Large enough that the server still reads it when the next lines arrive.
    let path = folder.path().join("large.json");
    let mut reports = String::new();
    for index in 0..600_000 {
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(
            reports,
            "{comma}{{\"process\": \"\", \"path\": \"explicit/a{}/b{index}\", \"kind\": 1, \"units\": 0, \"amount\": 8, \"description\": \"\"}}",
            index % 100
        );
    }
    std::fs::write(&path, crate::document(&reports)).unwrap();
    let mut server = Server::with(&["--root", folder.path().to_str().unwrap()]);
    let call = |id: u64| {
        let params = json!({ "name": "open", "arguments": { "path": path }, "_meta": meta() });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    server.send(&call(50));
    server.send(&call(50));
    server.send(&call(51));
    server.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 51 } }),
    );
    let (first, _) = server.receive();
    assert_eq!((&first["id"], code(&first)), (&json!(50), -32600));
    let (second, _) = server.receive();
    assert_eq!(second["id"], 50);
    assert_eq!(second["result"]["isError"], false, "{second}");
    // The cancelled call waited behind the first one. The next answer belongs to the next request.
    server.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 50 } }),
    );
    assert!(server.fail("close", json!({ "handle": "h9" })).contains("h1"));
    server.end();
}

#[test]
fn a_cancelled_open_keeps_no_source() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.json");
    let report = |index: u32| {
        format!(
            "{{\"process\": \"\", \"path\": \"explicit/b{index}\", \"kind\": 1, \"units\": 0, \"amount\": 8, \
             \"description\": \"\"}}"
        )
    };
    let reports: Vec<String> = (0..50_000).map(report).collect();
    std::fs::write(&path, crate::document(&reports.join(","))).unwrap();
    let mut server = Server::with(&["--root", folder.path().to_str().unwrap()]);
    for id in 100..104 {
        let mut meta = meta();
        meta["progressToken"] = json!("p");
        let params = json!({ "name": "open", "arguments": { "path": path }, "_meta": meta });
        server.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }));
        // The call runs when it reports progress.
        assert_eq!(server.receive().0["method"], "notifications/progress");
        server.send(
            &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }),
        );
    }
    let started = std::time::Instant::now();
    loop {
        // Messages about progress may come before the cancellations.
        server.send(&json!({
            "jsonrpc": "2.0", "id": "c", "method": "tools/call",
            "params": { "name": "close", "arguments": { "handle": "h9" }, "_meta": meta() },
        }));
        let message = loop {
            let (message, _) = server.receive();
            if message["id"] == "c" {
                break message;
            }
            assert!(message["method"] == "notifications/progress", "{message}");
        };
        let text = message["result"]["content"][0]["text"].as_str().unwrap();
        // The source of each cancelled call is gone when the call has ended.
        if text.contains("open a file") {
            break;
        }
        assert!(started.elapsed() < std::time::Duration::from_secs(60), "{text}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    server.end();
}

#[test]
fn the_skill_is_printed() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_about-memory"))
        .args(["mcp", "--skill"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.starts_with("---\nname: about-memory\n"), "{text}");
    let server = Server::start();
    // The skill names every tool of the server, so that no renamed tool stays in it.
    for tool in &server.tools {
        let name = tool["name"].as_str().unwrap();
        let is_named = ["rows", "node", "close"].contains(&name) || text.contains(&format!("`{name}`"));
        assert!(is_named, "{name}");
    }
    for name in text.split('`').skip(1).step_by(2).filter(|name| name.chars().all(|c| c.is_ascii_lowercase()))
    {
        let is_tool = server.tools.iter().any(|tool| tool["name"] == name);
        let is_word = text.contains(&format!("by `{name}`"))
            || ["capture", "total", "shown", "rest", "cursor", "notes", "by", "at"].contains(&name);
        assert!(is_tool || is_word, "{name} is no tool");
    }
    server.end();
}
