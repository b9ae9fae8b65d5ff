//! What a program answers when collectors and tools ask for its memory over HTTP, without any HTTP crate.
//!
//! [`Endpoint::respond`] takes the path, the query and the header `Accept` of a `GET`, and returns a status, headers and a
//! body. A server of any kind passes them on. [`Endpoint::answer`] also checks the header `Host`, and learns when the client
//! goes.
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
//! | `/metrics` | reports in `OpenMetrics` or in the text of Prometheus, as `Accept` asks | Prometheus, Grafana Alloy |
//! | `/debug/pprof/heap`, `/debug/pprof/allocs` | what DMD records, as a pprof profile | `go tool pprof`, Parca, Grafana Alloy |
//! | `/memory/report` | `memory-report.json`; compressed if `Accept` has `application/gzip` | `about-memory`, Firefox |
//! | `/memory/snapshot` | a heap snapshot, if the program gives one | Firefox, `about-memory snapshot` |
//!
//! Both profiles have the same contents, as in Go: live blocks, or in DMD's mode `cumulative` all that were allocated.
//! `?seconds=N` asks for the difference of two profiles N seconds apart, in which amounts may be negative; a delta of live
//! blocks is their growth. `?debug=0` and `?gc=0` or `1` are accepted, and change nothing. Any other parameter is an
//! error: a misspelt `seconds` would otherwise be the wrong profile.
//!
//! # Who may ask
//!
//! Nothing listens unless the program mounts it. **Mount it on a port that only administrators reach**: on loopback, on
//! a network for management, or behind a proxy that asks for a password. A profile names the functions of the program
//! and how much memory each holds; a snapshot names types and fields; each costs time and memory, so whoever may ask
//! can slow the program down. Kubernetes had `/debug/pprof` on the port of its health checks, which others must reach:
//! [CVE-2019-11248](https://nvd.nist.gov/vuln/detail/CVE-2019-11248).
//!
//! A page in a browser can rebind its own name to this machine (DNS rebinding), also to a port on loopback. So the router
//! refuses a `Host` that is neither an address nor `localhost`, unless [`EndpointOptions::host_names`] has it or
//! [`EndpointOptions::any_host`] is on. Another server passes the header on with [`GetRequest::host`].
//!
//! By default reporters leave private data out of paths and descriptions ([`EndpointOptions::private`]). A snapshot is what the
//! program makes it.
//!
//! # What it costs
//!
//! No request looks symbols up in the program, which would take seconds and more memory than many programs have: a
//! profile has addresses with build ids, and clients look the functions up. For the same reason metrics and reports have
//! no rows of DMD below `heap-unclassified`.
//!
//! - One request is at work at a time in a process, whatever the number of endpoints. Others get the status 429 with
//!   `Retry-After`. While a difference waits for its second profile, other requests are answered; another difference gets
//!   the time that is left in `Retry-After`. A difference whose client has gone ends ([`GetRequest::wanted`]).
//! - A request takes at most [`EndpointOptions::deadline`], and the seconds of a difference. After that the answer is 503; a
//!   reporter or a snapshot that still runs keeps its turn until it ends.
//! - A profile costs a dump in a private file below the folder for temporary files, which is deleted before it is read,
//!   and the memory to read it: at most [`EndpointOptions::max_dump_bytes`] are read. A body has at most [`EndpointOptions::max_bytes`].
//!
//! # DMD
//!
//! Profiles need DMD in the process: the wrapper `dmd::Dmd` around the global allocator, or `libdmd.so`. In production
//! let it sample (`DMD='--mode=live --sample-bytes=512KiB'`). Samples have the labels `kind` and `reporter` if the mode
//! is `dark-matter`. Without DMD the answer is 503 and says so; metrics and reports need no DMD.
//!
//! # Features
//!
//! Without a feature the crate adds seven crates to those of `memory-reporter`: `about-memory` without its program,
//! `dmd-analyze` without symbols, `lz4_flex`, `memory-export`, `regex-lite`, `rustc-hash`, and itself. `axum` adds 22, and
//! `pyroscope` one. DMD is no dependency: the endpoint finds the engine of the process.
//!
//! - `axum`: `router`, a `Router` of axum 0.8.
//! - `pyroscope`: the module `pyroscope` pushes profiles to a server of Pyroscope.
//!
//! # What it does not do
//!
//! It opens no port, and knows no users, no TLS and no methods other than `GET`: that is the server's part. It has no
//! profiles of the processor's time.

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
