use http::Request;
use memory_reporter::{MallocSizeOf, MallocSizeOfOps, Reading};

use super::http::headers;

/// A request or response of hyper is a type of the crate http. It contains its headers and a body of your type.
pub fn measure<B: MallocSizeOf, R: Reading>(request: &Request<B>, ops: &mut MallocSizeOfOps<R>) -> usize {
    headers(request.headers(), ops) + ops.field("body", request.body())
}
