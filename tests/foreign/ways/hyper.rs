use http::Request;
use memory_reporter::{MallocSizeOf, MallocSizeOfOps, Reading};

use super::http::headers;

/// A request or response of hyper is one of the crate http: its headers, and your type of bodies.
pub fn measure<B: MallocSizeOf, R: Reading>(request: &Request<B>, ops: &mut MallocSizeOfOps<R>) -> usize {
    headers(request.headers(), ops) + ops.field("body", request.body())
}
