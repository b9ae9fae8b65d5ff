//! The dump that the black box of an earlier process has left.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use dmd_analyze::kept::KeptDumpName;
use memory_reporter::engine_abi::black_box_folder;

use crate::bounded::BoundedBody;
use crate::options::EndpointOptions;
use crate::response::{RefusedRequest, ResponseBody};

pub(crate) fn last(options: &EndpointOptions) -> Result<ResponseBody, RefusedRequest> {
    let (folder, first) = black_box_folder().ok_or_else(|| {
        RefusedRequest::new(
            404,
            "this program has no black box: start it with DMD='--mode=live --sample-bytes=512KiB --dump-near-limit'",
        )
    })?;
    let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| KeptDumpName::parse(entry.file_name().to_str()?));
    let name = KeptDumpName::previous(names, std::process::id(), first)
        .ok_or_else(|| RefusedRequest::new(404, "no earlier process has left a dump"))?;
    let bytes = BoundedBody::new(options.max_bytes).fill("the dump", |body| {
        let path = Path::new(&folder).join(name.to_string());
        // Opening a pipe would wait, and a link may lead to a file outside of the folder.
        if !fs::symlink_metadata(&path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        let file = File::open(path)?;
        io::copy(&mut file.take(options.max_bytes as u64 + 1), body).map(drop)
    })?;
    let file_name = if name.is_partial { "last.json.gz.partial" } else { "last.json.gz" };
    Ok(ResponseBody { content_type: "application/gzip", file_name: Some(file_name), bytes })
}
