//! The limits and the contents of answers.

use std::time::Duration;

/// The options of an [`Endpoint`](crate::Endpoint).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EndpointOptions {
    pub(crate) deadline: Duration,
    pub(crate) max_seconds: u64,
    pub(crate) max_bytes: usize,
    pub(crate) max_dump_bytes: u64,
    pub(crate) max_series: usize,
    pub(crate) private: bool,
    pub(crate) process: Option<String>,
    pub(crate) host_names: Vec<String>,
    pub(crate) any_host: bool,
}

impl Default for EndpointOptions {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(30),
            max_seconds: 300,
            max_bytes: 64 << 20,
            max_dump_bytes: 256 << 20,
            max_series: 500,
            private: false,
            process: None,
            host_names: Vec::new(),
            any_host: false,
        }
    }
}

impl EndpointOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum time of a request, without the seconds for which a difference waits. A reporter may take half
    /// of this time. Default: 30 seconds.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets the maximum value of the parameter `seconds`. Default: 300.
    #[must_use]
    pub fn max_seconds(mut self, seconds: u64) -> Self {
        self.max_seconds = seconds;
        self
    }

    /// Sets the maximum size of a body, in bytes. Default: 64 MiB.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets the maximum size of an uncompressed dump of DMD, in bytes. Default: 256 MiB.
    #[must_use]
    pub fn max_dump_bytes(mut self, bytes: u64) -> Self {
        self.max_dump_bytes = bytes;
        self
    }

    /// Sets the maximum number of series of reports in `/metrics`. Default: 500.
    #[must_use]
    pub fn max_series(mut self, series: usize) -> Self {
        self.max_series = series;
        self
    }

    /// Whether reporters keep private data in paths and descriptions. Default: no.
    #[must_use]
    pub fn private(mut self, private: bool) -> Self {
        self.private = private;
        self
    }

    /// Sets the name of the process, for the label `process` of metrics. It should be the same in each run of the
    /// program. Otherwise each run has new series. Default: the name of the executable file.
    #[must_use]
    pub fn process(mut self, name: impl Into<String>) -> Self {
        self.process = Some(name.into());
        self
    }

    /// Adds a name, without a port, under which clients reach the server, in addition to its addresses and `localhost`.
    /// A request with another name in `Host` is rejected, because a page in a browser can rebind its own name to this
    /// machine. Default: no name.
    #[must_use]
    pub fn host_name(mut self, name: impl Into<String>) -> Self {
        self.host_names.push(name.into());
        self
    }

    /// Whether `Host` may be any name, for a server behind a proxy that checks the header. Default: no.
    #[must_use]
    pub fn any_host(mut self, any: bool) -> Self {
        self.any_host = any;
        self
    }

    /// The maximum time of one reporter.
    pub(crate) fn reporter_deadline(&self) -> Duration {
        self.deadline / 2
    }

    /// The name of the process.
    pub(crate) fn process_name(&self) -> String {
        let of_executable = || {
            let path = std::env::current_exe().ok()?;
            Some(path.file_name()?.to_string_lossy().into_owned())
        };
        self.process.clone().or_else(of_executable).unwrap_or_else(|| "unknown".to_owned())
    }
}
