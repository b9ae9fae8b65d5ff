//! Reading DMD dumps within limits.

use std::path::Path;

use clap::Args;
use dmd_analyze::DumpReadOptions;

#[derive(Args, Clone)]
pub(crate) struct DumpLimits {
    /// Read at most this many bytes per file, uncompressed. The limit also applies to debug information.
    #[arg(long, value_name = "BYTES", default_value_t = DumpReadOptions::MAX_BYTES)]
    max_bytes: u64,
    /// Read at most this many blocks, traces and frames in total.
    #[arg(long, value_name = "N", default_value_t = DumpReadOptions::MAX_ENTRIES)]
    max_entries: usize,
}

impl DumpLimits {
    pub(super) fn with_max_bytes(max_bytes: u64) -> Self {
        Self { max_bytes, max_entries: DumpReadOptions::MAX_ENTRIES }
    }

    pub(super) fn options(&self) -> DumpReadOptions {
        DumpReadOptions::new().max_bytes(self.max_bytes).max_entries(self.max_entries)
    }
}

/// Whether a name is `-`, standard input.
pub(super) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}
