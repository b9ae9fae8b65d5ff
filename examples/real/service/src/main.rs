//! `service [ADDRESS] [SECONDS]` serves pages, keeps them in a cache, and records the visits of each session. It never
//! removes a session: this is the leak. After SECONDS, or at Ctrl+C, it shuts down normally, and frees all memory.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::extract::{Path, Query, State};
use axum::routing::get;
use axum::{Router, serve};
use moka::future::Cache;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

struct Page {
    title: String,
    body: String,
    links: Vec<String>,
}

/// A page that a session has seen.
struct Visit {
    page: String,
    preview: String,
    agent: Option<String>,
    after: Duration,
}

struct App {
    started: Instant,
    pages: Cache<u64, Arc<Page>>,
    sessions: Mutex<HashMap<u64, Vec<Visit>>>,
    requests: AtomicU64,
}

async fn render(number: u64) -> Arc<Page> {
    // A template engine also starts with a buffer of a fixed size.
    let mut body = String::with_capacity(32 << 10);
    for paragraph in 0..20 + number % 50 {
        body.push_str("<p>");
        body.push_str(&format!("Paragraph {paragraph} of page {number}. ").repeat(10));
        body.push_str("</p>\n");
    }
    tokio::time::sleep(Duration::from_millis(1)).await;
    let links = (1..=number % 10).map(|link| format!("/pages/{}", number + link)).collect();
    Arc::new(Page { title: format!("Page {number}"), body, links })
}

async fn page(
    State(app): State<Arc<App>>,
    Path(number): Path<u64>,
    Query(query): Query<HashMap<String, String>>,
) -> String {
    app.requests.fetch_add(1, Ordering::Relaxed);
    let page = app.pages.get_with(number, render(number)).await;
    if let Some(session) = query.get("session").and_then(|session| session.parse().ok()) {
        remember(&app, session, &page, query.get("agent")).await;
    }
    format!("<h1>{}</h1>\n{}{}", page.title, page.body, page.links.join(" "))
}

async fn remember(app: &App, session: u64, page: &Page, agent: Option<&String>) {
    let visit = Visit {
        page: page.title.clone(),
        preview: page.body.chars().take(1_000).collect(),
        agent: agent.cloned(),
        after: app.started.elapsed(),
    };
    app.sessions.lock().expect("no visit panics").entry(session).or_default().push(visit);
}

async fn status(State(app): State<Arc<App>>) -> String {
    let sessions = app.sessions.lock().expect("no visit panics");
    let visits = sessions.values().flatten();
    let newest = visits.clone().map(|visit| visit.after).max().unwrap_or_default();
    let longest = visits
        .clone()
        .map(|visit| visit.page.len() + visit.preview.len() + visit.agent.as_ref().map_or(0, String::len))
        .max();
    format!(
        "{} requests, {} pages in the cache, {} sessions, {} visits, the last after {newest:?}, the longest {longest:?}\n",
        app.requests.load(Ordering::Relaxed),
        app.pages.entry_count(),
        sessions.len(),
        visits.count()
    )
}

#[tokio::main(worker_threads = 2)]
async fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:8080".into());
    let seconds = arguments.next().and_then(|seconds| seconds.parse().ok()).unwrap_or(u64::MAX >> 34);

    let app = Arc::new(App {
        started: Instant::now(),
        pages: Cache::new(1_000),
        sessions: Mutex::default(),
        requests: AtomicU64::new(0),
    });
    let router = Router::new().route("/pages/{number}", get(page)).route("/status", get(status));
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("listening at http://{}", listener.local_addr()?);
    let end = async move {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            () = tokio::time::sleep(Duration::from_secs(seconds)) => {}
        }
    };
    let answer = router.with_state(Arc::clone(&app));
    serve(listener, answer).with_graceful_shutdown(end).await?;
    print!("{}", status(State(app)).await);
    Ok(())
}
