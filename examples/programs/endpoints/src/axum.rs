//! A service on axum, with an endpoint for administrators on a separate port. Lines that end in `// +` are added for
//! the endpoint.
//!
//! ```sh
//! DMD='--mode=live --sample-bytes=512KiB' cargo run --bin endpoint_axum 127.0.0.1:9464
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Path;
use axum::routing::get;
use heap_graph::HeapGraph; // +
use heap_graph::live::{LiveGraphOptions, Roots}; // +
use heap_graph::snapshot::SnapshotWriteOptions; // +
use memory_endpoint::Endpoint; // +
use tokio::net::TcpListener;

// DMD records if the variable `DMD` is set.
memory_reporter::global_allocator!(dmd::Dmd<std::alloc::System>: dmd::Dmd::new(std::alloc::System)); // +

/// The number of times that each name was greeted.
static GREETED: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());
memory_reporter::define_reporter!("explicit/greeted", Heap, &GREETED, "Memory used by the names of guests."); // +

async fn greet(Path(name): Path<String>) -> String {
    let mut greeted = GREETED.lock().expect("no thread panics while it holds the lock");
    let times = greeted.entry(name.clone()).or_default();
    *times += 1;
    format!("Hello {name}, greeting number {times}\n")
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:9464".to_owned());
    let service = TcpListener::bind("127.0.0.1:0").await?;
    println!("service http://{}/greet/NAME", service.local_addr()?);
    let admin = TcpListener::bind(address).await?; // +
    println!("admin http://{}", admin.local_addr()?); // +
    let endpoint = Endpoint::new().snapshot(|file| { // +
        let roots = |roots: &mut Roots<'_>| roots.add("greeted", &GREETED); // +
        HeapGraph::stream(file, LiveGraphOptions::new(), &SnapshotWriteOptions::new(), roots).map(drop) // +
    }); // +
    let router: Router = memory_endpoint::router(Arc::new(endpoint)); // +
    tokio::spawn(async move { axum::serve(admin, router).await }); // +
    axum::serve(service, Router::new().route("/greet/{name}", get(greet))).await
}
