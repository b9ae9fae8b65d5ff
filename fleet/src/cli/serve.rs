//! `serve`.

use std::io::{self, Write as _};
use std::path::PathBuf;

use about_memory::http::Listen;
use clap::Args;
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};

use super::Outcome;
use crate::error::FleetError;
use crate::serve::{FleetServer, PageOptions};
use crate::session::SessionOptions;

pub(super) const EXAMPLES: &str = "Examples:\n  memory-fleet serve fleet\n  memory-fleet serve fleet --port 8124\n  memory-fleet serve fleet --unix \
     $XDG_RUNTIME_DIR/fleet    (for ssh -L 8123:$XDG_RUNTIME_DIR/fleet HOST)\n\nThe page is for this user on this machine \
     only: the server listens on 127.0.0.1, and each request needs the token in the printed address. From another machine, \
     forward the port, and a port for the reports that the page opens: memory-fleet serve fleet --port 8124 --report-port \
     8125, and ssh -L 8124:127.0.0.1:8124 -L 8125:127.0.0.1:8125 HOST. The server ends with Ctrl-C.";

/// Show the questions in the browser, with lines over time
#[derive(Args)]
pub(super) struct ServeCommand {
    /// The folder of the tables
    folder: PathBuf,
    /// The port. With --unix, the port that ssh forwards [default: a free port; 8123 with --unix]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Listen at a Unix socket that only this user can connect to, for ssh -L PORT:PATH
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,
    /// The port of 127.0.0.1 for the reports that the page opens; ssh forwards it under the same number [default: a free port]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    report_port: u16,
    /// The maximum number of megabytes (MiB) for sorting and grouping; more goes to temporary files
    #[arg(long, value_name = "MIB", default_value_t = 2048, value_parser = clap::value_parser!(u32).range(16..))]
    memory: u32,
    /// The number of threads of a question [default: one for each processor]
    #[arg(long, value_name = "THREADS", default_value_t = 0, hide_default_value = true)]
    threads: usize,
}

impl ServeCommand {
    pub(super) async fn run(self) -> Result<Outcome, FleetError> {
        let options = PageOptions {
            listen: self.unix.map_or(Listen::Loopback, Listen::Unix),
            port: self.port,
            report_port: self.report_port,
            session: SessionOptions {
                memory: (self.memory as usize) << 20,
                threads: self.threads,
                ..SessionOptions::default()
            },
        };
        let server = FleetServer::start(&self.folder, &options, Handle::current())?;
        writeln!(io::stdout(), "{}", server.url()).map_err(FleetError::Output)?;
        let mut ended = signal(SignalKind::terminate()).map_err(FleetError::Output)?;
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = ended.recv() => {}
        }
        Ok(Outcome::Done)
    }
}
