//! Options for writing tables.

/// The version of the columns, which is in each file's metadata. Later versions have more columns.
pub const SCHEMA_VERSION: u32 = 1;

/// Options for writing tables.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ParquetOptions {
    pub(crate) row_group: usize,
    pub(crate) level: i32,
    pub(crate) threads: usize,
    pub(crate) created_by: String,
}

impl Default for ParquetOptions {
    fn default() -> Self {
        let created_by = concat!("memory-export ", env!("CARGO_PKG_VERSION")).to_owned();
        Self { row_group: 1_000_000, level: 3, threads: 0, created_by }
    }
}

impl ParquetOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the number of rows in a row group; at least 1. Readers read row groups in parallel, or skip them as a
    /// whole. Default: 1,000,000.
    #[must_use]
    pub fn row_group(mut self, rows: usize) -> Self {
        self.row_group = rows;
        self
    }

    /// Sets the compression level of zstd, from 1 to 22. Default: 3.
    #[must_use]
    pub fn level(mut self, level: i32) -> Self {
        self.level = level;
        self
    }

    /// Sets the number of threads that encode columns. 0 means one for each processor; 1 means the calling thread. The
    /// bytes of the file do not depend on the number. Default: 0.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets the name of the writing program in each file's metadata. Default: this crate and its version.
    #[must_use]
    pub fn created_by(mut self, program: impl Into<String>) -> Self {
        self.created_by = program.into();
        self
    }
}
