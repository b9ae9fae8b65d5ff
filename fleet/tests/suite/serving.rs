//! The server of the page: who gets answers, what they contain, and their limits.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::LazyLock;

use memory_fleet::{FleetServer, PageOptions, Question, SimulationOptions, simulate};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::support::{add_run, all_rows, block_on, open, report};

/// Names that could deceive a page or a query.
const HOSTILE: [&str; 6] = [
    "<img src=x onerror=alert(1)>",
    "' OR '1'='1",
    "\u{202e}gnp.exe",
    "a/b%2Fc=d",
    "\"}],\"x\":[{",
    "é\u{2066}=x",
];

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap());

/// 30 processes for 8 days.
static TRIAL: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let mut options = SimulationOptions::default();
    options.processes = 30;
    options.days = 8;
    options.minutes = 180;
    options.paths = 20;
    options.planted = 6;
    simulate(folder.path(), &options).unwrap();
    folder
});

struct Client {
    server: FleetServer,
    token: String,
}

impl Client {
    fn new(root: &Path) -> Self {
        Self::with_options(root, &PageOptions::default())
    }

    fn with_options(root: &Path, options: &PageOptions) -> Self {
        let server = FleetServer::start(root, options, RUNTIME.handle().clone()).unwrap();
        let token = server.url().split_once("/#token=").unwrap().1.to_owned();
        Self { server, token }
    }

    fn ask(&self, path: &str, body: &Value) -> (u16, Value) {
        ask(self.server.address(), &self.token, path, body)
    }

    fn good(&self, path: &str, body: &Value) -> Value {
        let (status, value) = self.ask(path, body);
        assert_eq!(status, 200, "{value}");
        value
    }
}

/// Sends bytes. Returns the status, the head and the body.
fn raw(address: SocketAddr, request: &[u8]) -> (u16, String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_owned(), body.to_owned())
}

fn ask(address: SocketAddr, token: &str, path: &str, body: &Value) -> (u16, Value) {
    let body = body.to_string();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let (status, _, body) = raw(address, request.as_bytes());
    (status, serde_json::from_str(&body).unwrap())
}

fn scope(service: &str, path: &str) -> Value {
    json!({ "service": service, "path": path })
}

#[test]
fn only_requests_of_the_page_get_answers() {
    let client = Client::new(TRIAL.path());
    let address = client.server.address();
    assert!(address.ip().is_loopback());
    let send = |host: &str, more: &str, body: &str| {
        let head =
            format!("POST /api/state HTTP/1.1\r\nHost: {host}\r\nContent-Length: {}\r\n{more}", body.len());
        raw(address, format!("{head}\r\n{body}").as_bytes()).0
    };
    let (host, json) = (address.to_string(), "Content-Type: application/json\r\n");
    let token = format!("Authorization: Bearer {}\r\n", client.token);
    assert_eq!(send(&host, &format!("{token}{json}"), "{}"), 200);
    assert_eq!(send(&host, json, "{}"), 401, "no token");
    assert_eq!(send(&host, &format!("Authorization: Bearer {}\r\n{json}", "0".repeat(64)), "{}"), 401);
    assert_eq!(send("evil.example", &format!("{token}{json}"), "{}"), 403, "a page that rebinds its name");
    assert_eq!(send(&host, &format!("{token}{json}Origin: http://evil.example\r\n"), "{}"), 403);
    assert_eq!(send(&host, &format!("{token}{json}Sec-Fetch-Site: cross-site\r\n"), "{}"), 403);
    assert_eq!(send(&host, &format!("{token}Content-Type: text/plain\r\n"), "{}"), 415);
    assert_eq!(send(&host, &format!("{token}{json}"), &" ".repeat(70_000)), 413);
    assert_eq!(send(&host, &format!("{token}{json}"), "{"), 400);
}

#[test]
fn the_page_contains_neither_data_nor_token() {
    let client = Client::new(TRIAL.path());
    let address = client.server.address();
    for path in ["/", "/fleet.js", "/fleet.css"] {
        let (status, head, body) =
            raw(address, format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes());
        assert_eq!(status, 200, "{path}");
        assert!(head.contains("Content-Security-Policy: default-src 'none'; script-src 'self'"), "{head}");
        assert!(head.contains("require-trusted-types-for 'script'"), "{head}");
        assert!(!body.contains(&client.token) && !body.contains("auth-0000"), "{path}");
    }
    for path in ["/..%2f..%2fetc/passwd", "/serve.js", "/truth.json"] {
        assert_eq!(raw(address, format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes()).0, 404);
    }
}

#[test]
fn each_question_has_the_rows_of_the_command() {
    let client = Client::new(TRIAL.path());
    let session = open(TRIAL.path());
    for (name, question) in [
        ("growth", Question::Growth),
        ("versions", Question::Versions),
        ("leaks", Question::Leaks),
        ("changes", Question::Changes),
        ("outliers", Question::Outliers),
        ("dark", Question::Dark),
        ("coverage", Question::Coverage),
    ] {
        let answer = client.good("/api/ask", &json!({ "question": name, "scope": scope("", "explicit") }));
        let expected = block_on(session.ask(&question, &all_rows())).unwrap();
        assert_eq!(answer["title"], expected.title.as_str());
        assert_eq!(answer["rows"].as_array().unwrap().len(), expected.rows.num_rows(), "{name}");
        assert_eq!(answer["next"], json!(expected.next), "{name}");
        let columns: Vec<&str> = answer["columns"]
            .as_array()
            .unwrap()
            .iter()
            .map(|column| column["name"].as_str().unwrap())
            .collect();
        let fields = expected.rows.schema();
        assert_eq!(columns, fields.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>());
    }
    for (question, scope, status) in [
        ("query", scope("", ""), 404),
        ("growth", json!({ "from": "2026-02-30" }), 400),
        ("growth", json!({ "sql": "SELECT 1" }), 400),
        ("growth", json!({ "from": "2036-01-01" }), 409),
    ] {
        let (found, value) = client.ask("/api/ask", &json!({ "question": question, "scope": scope }));
        assert_eq!(found, status, "{value}");
        assert!(value["error"].is_string());
    }
}

#[test]
fn lines_have_the_versions_as_marks_and_lead_to_a_report() {
    let client = Client::new(TRIAL.path());
    let state = client.good("/api/state", &json!({}));
    let service = state["services"][0]["name"].as_str().unwrap();
    let series = client.good("/api/series", &json!({ "scope": scope(service, "explicit") }));
    let times = series["times"].as_array().unwrap();
    // 8 days, 4 times each.
    assert_eq!(times.len(), 32, "{times:?}");
    let marks: Vec<&Value> = series["marks"].as_array().unwrap().iter().map(|mark| &mark["text"]).collect();
    let mut versions = state["services"][0]["versions"].as_array().unwrap().clone();
    versions.reverse();
    assert_eq!(marks, versions.iter().collect::<Vec<_>>());
    assert!(marks.len() > 1);
    let mean = series["lines"][0]["amounts"][0].as_f64().unwrap();
    let highest = series["lines"][1]["amounts"][0].as_f64().unwrap();
    assert!(0.0 < mean && mean <= highest);

    let largest = client.good("/api/processes", &scope(service, "explicit"));
    let process = &largest["processes"][0];
    let name = json!({ "host": process["host"], "process": process["process"], "pid": process["pid"] });
    let body = json!({ "scope": scope(service, "explicit"), "process": name });
    let own = client.good("/api/series", &body);
    let line = &own["lines"][0];
    assert!(line["name"].as_str().unwrap().ends_with(process["host"].as_str().unwrap()));
    let last = line["amounts"].as_array().unwrap().iter().filter_map(Value::as_f64).next_back().unwrap();
    assert!((last - process["amount"].as_f64().unwrap()).abs() < 1.0, "{line}");

    // The address of the report belongs to a server of about-memory, which shows the same amounts.
    let opened = client.good("/api/report", &body);
    let url = opened["url"].as_str().unwrap();
    let (origin, rest) = url.strip_prefix("http://").unwrap().split_once("/#token=").unwrap();
    let (token, id) = rest.split_once("&report=").unwrap();
    let get = |path: &str| {
        let head = format!("GET {path} HTTP/1.1\r\nHost: {origin}\r\nAuthorization: Bearer {token}\r\n\r\n");
        raw(origin.parse().unwrap(), head.as_bytes())
    };
    let state: Value = serde_json::from_str(&get("/api/state").2).unwrap();
    assert_eq!(state["reports"][0]["title"], opened["title"]);
    assert_eq!(state["reports"][0]["id"].to_string(), id);
    assert_eq!(state["readOnly"], true);
    let (_, _, file) = get(&format!("/api/reports/{id}/file?format=text"));
    assert!(file.contains("explicit"), "{file}");
    // The same report again has the same address.
    assert_eq!(client.good("/api/report", &body)["url"], opened["url"]);
    let nobody =
        json!({ "scope": scope(service, ""), "process": { "host": "nowhere", "process": "x", "pid": null } });
    assert_eq!(client.ask("/api/report", &nobody).0, 409);
}

#[test]
fn hostile_names_are_only_data() {
    let folder = tempfile::tempdir().unwrap();
    for (place, name) in HOSTILE.iter().enumerate() {
        let path = format!(
            "explicit/{}",
            serde_json::to_string(name).unwrap().trim_matches('"').replace('/', "\\\\")
        );
        for hour in [0, 12, 24, 36] {
            let body = report("app", &[(&path, 1_000_000 * (1 + hour)), ("heap-allocated", 90_000_000)]);
            let time = 1_796_000_000 + 3600 * hour as u64;
            add_run(folder.path(), (name, &format!("{name}-{place}"), name), time, &body);
        }
    }
    let client = Client::new(folder.path());
    let state = client.good("/api/state", &json!({}));
    let services: Vec<&str> = state["services"]
        .as_array()
        .unwrap()
        .iter()
        .map(|service| service["name"].as_str().unwrap())
        .collect();
    let mut expected = HOSTILE;
    expected.sort_unstable();
    assert_eq!(services, expected);
    for name in HOSTILE {
        let body = json!({ "question": "growth", "scope": scope(name, "explicit") });
        let answer = client.good("/api/ask", &body);
        let rows = answer["rows"].as_array().unwrap();
        // Only this service: a quote in a name ends no text of SQL.
        assert!(!rows.is_empty() && rows.iter().all(|row| row[0] == name), "{name}: {answer}");
        let series = client.good("/api/series", &json!({ "scope": scope(name, "explicit") }));
        assert_eq!(series["marks"][0]["text"], name);
        let largest = client.good("/api/processes", &scope(name, "explicit"));
        let process = &largest["processes"][0];
        let process =
            json!({ "host": process["host"], "process": process["process"], "pid": process["pid"] });
        let opened = client.good("/api/report", &json!({ "scope": scope(name, ""), "process": process }));
        assert!(opened["title"].as_str().unwrap().contains(name), "{opened}");
    }
    for path in ["x' OR path = 'y", "';DROP TABLE reports", "\u{0}", "%"] {
        let answer = client.good("/api/ask", &json!({ "question": "growth", "scope": scope("", path) }));
        assert_eq!(answer["rows"], json!([]), "{path}");
    }
}

/// More reports than the page keeps: a report replaces the oldest. A name is never taken for a part of the query.
#[test]
fn reports_replace_the_oldest() {
    let folder = tempfile::tempdir().unwrap();
    let rows = |process: i64| {
        let body = report(&format!("pid = {process}"), &[("explicit/a", 1_000 + process)]);
        serde_json::from_str::<Value>(&body).unwrap()
    };
    let mut body = rows(0);
    body["reports"] = (0..52).map(|process| rows(process)["reports"][0].clone()).collect();
    add_run(folder.path(), ("search", "host = ''", "1"), 1_796_000_000, &body.to_string());
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut options = PageOptions::default();
    options.report_port = port;
    let client = Client::with_options(folder.path(), &options);
    let mut urls = Vec::new();
    for process in 0..52 {
        let name = json!({ "host": "host = ''", "process": format!("pid = {process}"), "pid": 0 });
        let opened = client.good("/api/report", &json!({ "scope": scope("search", ""), "process": name }));
        urls.push(opened["url"].as_str().unwrap().to_owned());
    }
    let origin = format!("127.0.0.1:{port}");
    assert!(urls.iter().all(|url| url.starts_with(&format!("http://{origin}/#token="))), "{urls:?}");
    let (token, _) = urls[0].split_once("#token=").unwrap().1.split_once('&').unwrap();
    let head = format!("GET /api/state HTTP/1.1\r\nHost: {origin}\r\nAuthorization: Bearer {token}\r\n\r\n");
    let state: Value = serde_json::from_str(&raw(origin.parse().unwrap(), head.as_bytes()).2).unwrap();
    let kept = state["reports"].as_array().unwrap();
    assert_eq!(kept.len(), 50);
    assert!(kept.iter().all(|report| report["id"].as_u64().unwrap() > 2), "{kept:?}");
}

#[test]
fn answers_have_limits() {
    let folder = tempfile::tempdir().unwrap();
    let long = "n".repeat(9_000);
    let amounts: Vec<(String, i64)> = (0..700).map(|path| (format!("explicit/p{path:03}"), 1_000)).collect();
    for day in 0..3 {
        let grown: Vec<(String, i64)> =
            amounts.iter().map(|(path, amount)| (path.clone(), amount * (1 + day))).collect();
        let mut grown: Vec<(&str, i64)> =
            grown.iter().map(|(path, amount)| (path.as_str(), *amount)).collect();
        let path = format!("explicit/{long}");
        grown.push((&path, 9_000_000 * (1 + day)));
        let time = 1_796_000_000 + 86_400 * day as u64;
        add_run(folder.path(), ("search", "h", "1"), time, &report("app", &grown));
    }
    let client = Client::new(folder.path());
    let answer = client.good("/api/ask", &json!({ "question": "growth", "scope": scope("", "explicit") }));
    assert_eq!(answer["rows"].as_array().unwrap().len(), 500);
    assert!(answer["notes"][0].as_str().unwrap().contains("more rows"), "{}", answer["notes"]);
    let path = answer["rows"][0][1].as_str().unwrap();
    assert!(path.ends_with('…') && path.chars().count() == 4_001, "{}", path.len());
}
