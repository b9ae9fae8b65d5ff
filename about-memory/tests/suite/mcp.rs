//! `about-memory mcp`: the protocol, the tools, paging, and hostile input, through standard input and output.

#[cfg(target_os = "linux")]
mod cases;
mod hostile;
mod paging;
mod protocol;
mod tools;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::json_schema::assert_valid;

/// The default limit of an answer, in bytes.
const DEFAULT_BYTES: usize = 6144;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn snapshot(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../heap-graph/tests/golden").join(name)
}

/// The `_meta` of a modern request.
fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    })
}

/// A server, and a client that speaks the modern protocol.
struct Server {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    last: u64,
    tools: Vec<Value>,
}

impl Server {
    /// Starts a server that may read the golden files.
    fn start() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        Self::with(&["--root", root.to_str().unwrap()])
    }

    fn with(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_about-memory"));
        command.arg("mcp").args(arguments);
        Self::spawn(command)
    }

    /// Starts a server without options in a folder.
    #[cfg(unix)]
    fn started_in(folder: &Path, home: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_about-memory"));
        command.arg("mcp").current_dir(folder).env("HOME", home);
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut server = Self { child, input, output, last: 0, tools: Vec::new() };
        let tools = server.request("tools/list", json!({}));
        server.tools = tools["result"]["tools"].as_array().unwrap().clone();
        server
    }

    fn send_bytes(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    fn send(&mut self, message: &Value) {
        self.send_bytes(message.to_string().as_bytes());
    }

    /// Reads the next message. Every line must be a message.
    fn receive(&mut self) -> (Value, usize) {
        let mut line = String::new();
        let length = self.output.read_line(&mut line).unwrap();
        assert!(length > 0, "the server ended");
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        (message, length)
    }

    fn request(&mut self, method: &str, mut params: Value) -> Value {
        self.last += 1;
        params["_meta"] = meta();
        self.send(&json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params }));
        let (message, _) = self.receive();
        assert_eq!(message["id"], self.last, "{message}");
        message
    }

    /// Calls a tool. Returns the structured content and the text, after a check of the size and of the schema.
    fn call_both(&mut self, tool: &str, arguments: Value) -> (Value, String) {
        let most = arguments["max_bytes"].as_u64().map_or(DEFAULT_BYTES, |bytes| bytes as usize);
        let what = format!("{tool} {arguments}");
        let message = self.request("tools/call", json!({ "name": tool, "arguments": arguments }));
        let length = message.to_string().len();
        let result = &message["result"];
        assert_eq!(result["isError"], false, "{what}: {message}");
        assert_eq!(result["resultType"], "complete", "{what}");
        assert!(length <= most, "{what}: {length} bytes");
        let kind = self.tools.iter().find(|known| known["name"] == tool).unwrap();
        assert_valid(&kind["outputSchema"], &result["structuredContent"], &what);
        assert_valid(&kind["inputSchema"], &arguments, &what);
        let text = result["content"][0]["text"].as_str().unwrap().to_owned();
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{what}: {text}");
        (result["structuredContent"].clone(), text)
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.call_both(tool, arguments).0
    }

    /// Calls a tool that must fail. Returns the advice.
    fn fail(&mut self, tool: &str, arguments: Value) -> String {
        let message = self.request("tools/call", json!({ "name": tool, "arguments": arguments }));
        assert_eq!(message["result"]["isError"], true, "{tool}: {message}");
        message["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Opens a file, and returns its handle.
    fn open(&mut self, path: &Path) -> String {
        let opened = self.call("open", json!({ "path": path }));
        opened["handle"].as_str().unwrap().to_owned()
    }

    /// Ends the input. The server must end by itself, without a further line.
    fn end(mut self) {
        self.input = None;
        let mut rest = String::new();
        assert_eq!(self.output.read_line(&mut rest).unwrap(), 0, "{rest}");
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Ends the server of a failed test.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
