//! A layer for `tracing`: live bytes, peak and allocations of spans.
//!
//! [`SpanTags`] maps chosen spans to [tags](memory_reporter::tags). What a thread allocates in such a span belongs to the
//! span's path, until any thread frees it. `Instrumented` futures enter their span at each poll, so a task has its memory
//! on every worker thread.
//!
//! ```standalone_crate
//! use memory_reporter::tags::CountedTag;
//! use memory_reporter_tracing::SpanTags;
//! use tracing_subscriber::prelude::*;
//!
//! memory_reporter::global_allocator!(std::alloc::System);
//!
//! let layer = SpanTags::new("explicit/queries").span_with_value("query", "id");
//! tracing_subscriber::registry().with(layer).init();
//!
//! let span = tracing::info_span!("query", id = 17);
//! let rows = span.in_scope(|| vec![0_u8; 1000]);
//! let query = CountedTag::new("explicit/queries/query/17")?;
//! assert_eq!(query.figures().retained_bytes, 1000);
//! # drop(rows);
//! # Ok::<(), memory_reporter::scopes::ScopeError>(())
//! ```
//!
//! Collections report the live bytes at the path, the peak below `tag-peaks/` and the number of allocations below
//! `tag-allocations/`.
//!
//! # Limits
//!
//! The layer needs a declared allocator: without one, spans have no tags and collections warn. Memory that `tracing`
//! itself allocates inside an entered span, such as the data of an inner span, belongs to this span. Each path is kept
//! until the process ends, so their number is bounded: see [`at_most`](SpanTags::at_most). Paths appear even in
//! anonymized reports, so the field of [`span_with_value`](SpanTags::span_with_value) must not contain private data.

#![forbid(unsafe_code)]

mod field_value;
mod span_tags;

pub use span_tags::SpanTags;
