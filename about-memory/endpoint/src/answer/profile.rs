//! Profiles: the blocks that DMD records, as pprof with addresses and build ids.

use std::fs::File;
use std::io::ErrorKind;
use std::time::Duration;

use dmd_analyze::{Dump, DumpReadOptions};
use memory_export::dmd::{self, ProfileOptions};
use memory_export::pprof::{self, PprofSymbols};
use memory_reporter::__private;

use crate::bounded::{BoundedBody, one_line};
use crate::options::EndpointOptions;
use crate::response::{RefusedRequest, ResponseBody};

/// Runs the reporters, and writes a dump to a file without a name.
pub(crate) fn dump(options: &EndpointOptions) -> Result<File, RefusedRequest> {
    __private::dump(options.reporter_deadline(), !options.private).map_err(|error| match error.kind() {
        ErrorKind::Unsupported => RefusedRequest::new(
            503,
            "DMD records nothing in this process: wrap the global allocator in dmd::Dmd or preload libdmd.so, and \
             start the program with DMD=1 or, for a sample, DMD='--mode=live --sample-bytes=512KiB'",
        ),
        ErrorKind::ResourceBusy => {
            RefusedRequest::new(503, "DMD is writing another dump").retry_after(Duration::from_secs(1))
        }
        _ => RefusedRequest::new(503, format!("DMD cannot write a dump: {}", one_line(&error.to_string()))),
    })
}

/// The profile of the dump `second`. If there is a dump `first`, the profile of the difference.
pub(crate) fn profile(
    first: Option<File>,
    second: File,
    options: &EndpointOptions,
) -> Result<ResponseBody, RefusedRequest> {
    let failure = |error: &dyn std::fmt::Display| {
        RefusedRequest::new(503, format!("the dump of DMD cannot be used: {}", one_line(&error.to_string())))
    };
    let limits = DumpReadOptions::new().max_bytes(options.max_dump_bytes);
    let read = |file: File| -> Result<Dump, RefusedRequest> {
        dmd_analyze::read_from(file, &limits).map_err(|error| failure(&error))
    };
    // Folding needs names of functions, and only clients look these up.
    let making = ProfileOptions::new().all_frames(true);
    let stacks = match first {
        Some(first) => dmd::difference(read(first)?, read(second)?, &making),
        None => dmd::stacks(read(second)?, &making),
    };
    let stacks = stacks.map_err(|error| failure(&error))?;
    let writing = pprof::PprofOptions::new().symbols(PprofSymbols::BuildId);
    let bytes = BoundedBody::new(options.max_bytes)
        .fill("the profile", |body| pprof::write(&stacks, &writing, body))?;
    Ok(ResponseBody { content_type: "application/octet-stream", file_name: Some("heap.pb.gz"), bytes })
}
