//! A page for browsers: the questions with lines over time, for this user on this machine.
//!
//! The rules of [`about_memory::http`] decide who gets data. A request names services, paths and processes, never files,
//! and runs no SQL of its own. Answers have limits: [`MAX_ROWS`](cells::MAX_ROWS) rows,
//! [`MAX_TEXT`](cells::MAX_TEXT) characters of a text, [`MAX_TIMES`](series::MAX_TIMES) points of a line,
//! [`MAX_REPORTS`](reports::MAX_REPORTS) open reports, and a time.

mod api;
mod cells;
mod reports;
mod series;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use about_memory::http::{HttpServer, Listen};
use tokio::runtime::Handle;

use crate::error::FleetError;
use crate::folder::TableFolder;
use crate::session::SessionOptions;

/// Options of a page.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct PageOptions {
    /// The place to listen.
    pub listen: Listen,
    /// The port; 0 stands for a free one.
    pub port: u16,
    /// The port of 127.0.0.1 for the reports that the page opens; 0 stands for a free one.
    pub report_port: u16,
    /// Limits of the questions.
    pub session: SessionOptions,
}

/// A server of the page, until it is dropped.
#[derive(Debug)]
pub struct FleetServer {
    http: HttpServer,
    url: String,
    _api: Arc<api::FleetApi>,
}

impl FleetServer {
    /// Starts a server. Its threads run the queries on `runtime`.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder cannot be read, or the port is in use.
    pub fn start(root: &Path, options: &PageOptions, runtime: Handle) -> Result<Self, FleetError> {
        TableFolder::open(root)?;
        let root: PathBuf = root.to_owned();
        let started = HttpServer::start(&options.listen, options.port, true, |guard| {
            let reports = reports::OpenReports::new(options.report_port);
            api::FleetApi::new(guard, root, options.session.clone(), runtime, reports)
        });
        let (http, api) =
            started.map_err(|error: io::Error| FleetError::at(Path::new("cannot serve"), error))?;
        Ok(Self { url: api.url(), http, _api: api })
    }

    /// The address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.http.address()
    }

    /// The address of the page, with the token. It must be kept secret.
    pub fn url(&self) -> &str {
        &self.url
    }
}
