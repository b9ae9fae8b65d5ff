//! Makes the bodies of answers. A separate thread makes each body, one body at a time.

mod last;
mod profile;
mod reports;

use std::io::{self, Write};

use crate::bounded::BoundedBody;
use crate::options::EndpointOptions;
use crate::response::{RefusedRequest, ResponseBody};

pub(crate) use last::last;
pub(crate) use profile::{dump, profile};
pub(crate) use reports::{metrics, report};

/// The program's function that writes a snapshot.
pub(crate) type WriteSnapshot = dyn Fn(&mut dyn Write) -> io::Result<()> + Send + Sync;

pub(crate) fn snapshot(
    write: &WriteSnapshot,
    options: &EndpointOptions,
) -> Result<ResponseBody, RefusedRequest> {
    let bytes = BoundedBody::new(options.max_bytes).fill("the snapshot", |body| write(body))?;
    let content_type = "application/octet-stream";
    Ok(ResponseBody { content_type, file_name: Some("heap.fxsnapshot"), bytes })
}
