//! Reading and analyzing dumps.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bounds;
mod coverage;
mod difference;
mod heap_profiles;
mod hostile;
mod peak;
mod program;
mod real_programs;
mod recording;
mod reports;
mod resident;
mod runtimes;
mod samples;
mod separate;
mod suggestions;
mod sums;
mod symbols;
mod types;
mod views;

use dmd_analyze::{AnalyzeError, Dump, DumpReadOptions};

fn read(text: impl AsRef<[u8]>) -> Result<Dump, AnalyzeError> {
    dmd_analyze::read_from(text.as_ref(), &DumpReadOptions::new().contents(true))
}

/// A dump's text; `tables` are the members after `blockList`.
fn document(mode: &str, blocks: &str, tables: &str) -> String {
    format!(
        "{{\"version\": 5, \"invocation\": {{\"dmdEnvVar\": null, \"mode\": \"{mode}\"}}, \
         \"blockList\": [{blocks}], {tables}}}"
    )
}

const TABLES: &str = r##""traceTable": {"A": ["B"]}, "frameTable": {"B": "#00: f (f.rs:1)"}"##;
