//! Calls `about-memory mcp` with the client of rmcp, in each of its modes: with `initialize`, with `server/discover`,
//! and with a probe. Each mode lists the tools, opens a file, reads all pages of a table, gets the advice of a wrong
//! call, cancels a call, and closes the file. `check` builds and runs this program.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rmcp::model::{CallToolRequestParams, ClientRequest, ProtocolVersion, Request};
use rmcp::service::{PeerRequestOptions, RunningService};
use rmcp::{ClientLifecycleMode, ClientServiceExt as _, RoleClient};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

type Client = RunningService<RoleClient, ()>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |name| arguments.next().context(name);
    let (program, root, file) = (next("the program")?, next("the root")?, next("a file")?);
    let modern = vec![ProtocolVersion::V_2026_07_28];
    let modes = [
        ("initialize", ClientLifecycleMode::Initialize),
        ("discover", ClientLifecycleMode::Discover { preferred_versions: modern.clone() }),
        ("auto", ClientLifecycleMode::Auto { preferred_versions: modern, legacy_version: None }),
    ];
    for (name, mode) in modes {
        let run = one_mode(&program, &root, &file, mode);
        let calls = tokio::time::timeout(Duration::from_secs(60), run).await.context(name)?.context(name)?;
        println!("{name}: {calls} calls");
    }
    Ok(())
}

async fn one_mode(program: &str, root: &str, file: &str, mode: ClientLifecycleMode) -> Result<usize> {
    let mut server: Child = Command::new(program)
        .args(["mcp", "--root", root])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let streams = (server.stdout.take().context("stdout")?, server.stdin.take().context("stdin")?);
    let client: Client = ().serve_with_lifecycle(streams, mode).await?;
    let tools = client.list_all_tools().await?;
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    let expected =
        ["open", "summary", "top", "explain", "rows", "node", "why", "census_diff", "source", "close"];
    ensure!(names == expected, "{names:?}");
    ensure!(tools.iter().all(|tool| tool.output_schema.is_some()), "each tool has an output schema");

    let opened = call(&client, "open", json!({ "path": file })).await?;
    let handle = opened["handle"].clone();
    let summary = call(&client, "summary", json!({ "handle": handle })).await?;
    ensure!(summary["total"] == opened["total"], "{summary}");
    let mut calls = 2;
    let mut sum = 0;
    let mut arguments = json!({ "handle": handle, "by": "path", "limit": 500, "max_bytes": 49152 });
    loop {
        let page = call(&client, "rows", arguments.clone()).await?;
        calls += 1;
        sum += page["shown"]["bytes"].as_i64().context("shown.bytes")?;
        if page["cursor"].is_null() {
            break;
        }
        arguments["cursor"] = page["cursor"].clone();
    }
    ensure!(opened["total"]["bytes"] == sum, "the pages have {sum} bytes, and the file {}", opened["total"]);

    let wrong = client.call_tool(params("top", json!({ "handle": "none" }))).await?;
    ensure!(wrong.is_error == Some(true), "{wrong:?}");
    ensure!(client.call_tool(params("none", json!({}))).await.is_err(), "an unknown tool is an error");

    // A cancelled call has no answer, and the next call has its own.
    let request = ClientRequest::CallToolRequest(Request::new(params("open", json!({ "path": file }))));
    let pending = client.send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
    pending.cancel(Some("not needed".to_owned())).await?;
    let closed = call(&client, "close", json!({ "handle": handle })).await?;
    ensure!(closed["handle"] == handle, "{closed}");

    client.cancel().await?;
    let status = tokio::time::timeout(Duration::from_secs(10), server.wait()).await??;
    ensure!(status.success(), "the server ended with {status}");
    Ok(calls + 4)
}

fn params(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    CallToolRequestParams::new(tool).with_arguments(arguments)
}

async fn call(client: &Client, tool: &'static str, arguments: Value) -> Result<Value> {
    let result = client.call_tool(params(tool, arguments)).await?;
    ensure!(result.is_error == Some(false), "{tool}: {result:?}");
    result.structured_content.context("structured content")
}
