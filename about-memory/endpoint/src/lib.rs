//! Answers for collectors and tools that request a program's memory over HTTP. The crate needs no HTTP crate.
//!
//! [`Endpoint::respond`] takes the path, the query and the header `Accept` of a `GET`, and returns a status, headers
//! and a body. A server of any kind passes them on. [`Endpoint::answer`] also checks the header `Host`, and stops
//! waiting for a client that is gone.
//!
//! ```
//! use memory_endpoint::Endpoint;
//!
//! memory_reporter::global_allocator!(std::alloc::System);
//!
//! let endpoint = Endpoint::new();
//! let response = endpoint.respond("/metrics", "", "text/plain");
//! assert_eq!(response.status, 200);
//! assert!(String::from_utf8(response.body).unwrap().contains("path=\"heap-allocated\""));
//! ```
//!
//! | path | answer | clients |
//! | --- | --- | --- |
//! | `/metrics` | reports in `OpenMetrics` or in the text of Prometheus, by `Accept` | Prometheus, Grafana Alloy |
//! | `/debug/pprof/heap`, `/debug/pprof/allocs` | the blocks that DMD records, as a pprof profile | `go tool pprof`, Parca, Grafana Alloy |
//! | `/memory/report` | `memory-report.json`; compressed if `Accept` has `application/gzip` | `about-memory`, Firefox |
//! | `/memory/snapshot` | a heap snapshot, if the program writes one | Firefox, `about-memory snapshot` |
//! | `/memory/last` | the last dump that DMD's black box wrote in an earlier process | `about-memory dmd` |
//!
//! Both profiles have the same contents, as in Go: the live blocks or, in DMD's mode `cumulative`, all blocks that were
//! allocated. `?seconds=N` requests the difference of two profiles that are N seconds apart. Amounts of a difference
//! may be negative. For live blocks, the difference is their growth. `?debug=0`, `?gc=0` and `?gc=1` are accepted, and
//! change nothing. Any other parameter is an error, because a misspelled `seconds` would give the wrong profile.
//!
//! # Who may ask
//!
//! The program must mount the endpoint itself. **Mount it on a port that only administrators reach**: on loopback, on a
//! management network, or behind a proxy with a password. A profile contains the names of the program's functions and
//! the memory that each function holds. A snapshot contains types and fields. Each request costs time and memory, so
//! everyone with access can slow the program down. Kubernetes had `/debug/pprof` on the port of its health checks,
//! which others must reach: [CVE-2019-11248](https://nvd.nist.gov/vuln/detail/CVE-2019-11248).
//!
//! A page in a browser can rebind its own name to this machine (DNS rebinding), also to a port on loopback. So the
//! router rejects a `Host` that is neither an address nor `localhost`, unless [`EndpointOptions::host_name`] contains
//! it or [`EndpointOptions::any_host`] is on. Other servers pass the header on with [`GetRequest::host`].
//!
//! By default, reporters leave private data out of paths and descriptions ([`EndpointOptions::private`]). The program
//! decides the contents of a snapshot.
//!
//! # What it costs
//!
//! No request looks up symbols in the program: that would take seconds, and more memory than many programs have. A
//! profile has addresses with build ids, and clients look up the functions. For the same reason, metrics and reports
//! have no rows of DMD below `heap-unclassified`.
//!
//! - One request runs at a time in a process, whatever the number of endpoints. Other requests get the status 429 with
//!   `Retry-After`.
//! - While a difference waits for its second profile, other requests are answered. Another difference gets the status
//!   429, with the remaining time in `Retry-After`. A difference whose client is gone ends ([`GetRequest::wanted`]).
//! - A request takes at most [`EndpointOptions::deadline`], plus the seconds of a difference. After that, the status of
//!   the answer is 503. A reporter or a snapshot that is still running blocks other requests until it ends.
//! - A profile needs a dump in a private file in the folder for temporary files; the file is deleted before it is read.
//!   It also needs the memory to read the dump: the endpoint reads at most [`EndpointOptions::max_dump_bytes`].
//! - A body has at most [`EndpointOptions::max_bytes`].
//!
//! # DMD
//!
//! Profiles need DMD in the process: the wrapper `dmd::Dmd` around the global allocator, or `libdmd.so`. In production,
//! let DMD sample (`DMD='--mode=live --sample-bytes=512KiB'`). In the mode `dark-matter`, samples have the labels
//! `kind` and `reporter`. Without DMD, the answer is 503 with the reason. Metrics and reports do not need DMD.
//!
//! # Features
//!
//! Without features, the crate adds eight crates to a program with `memory-reporter`: `dmd-analyze` without symbols,
//! `dmd-format`, `lz4_flex`, `memory-export`, `rustc-hash`, `thiserror` with its macro, and itself. `axum` adds 22
//! crates, and `pyroscope` adds one. DMD is not a dependency: the endpoint finds the engine in the process.
//!
//! - `axum`: `router`, a `Router` of axum 0.8.
//! - `pyroscope`: the module `pyroscope` pushes profiles to a server of Pyroscope.
//!
//! # What it does not do
//!
//! The crate opens no port, and does not handle users, TLS, or methods other than `GET`: the server does that. It has
//! no CPU profiles.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod accept;
mod answer;
mod bounded;
mod endpoint;
mod get_request;
mod host;
mod options;
#[cfg(feature = "pyroscope")]
pub mod pyroscope;
mod request;
mod response;
#[cfg(feature = "axum")]
mod router;
mod turn;

pub use endpoint::Endpoint;
pub use get_request::GetRequest;
pub use options::EndpointOptions;
pub use request::PATHS;
pub use response::EndpointResponse;
#[cfg(feature = "axum")]
pub use router::router;
