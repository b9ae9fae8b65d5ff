//! `about-memory serve`: a live page in the browser.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use about_memory::HtmlOptions;
use about_memory::export::{StacksFormat, StacksOptions, Window};
use about_memory::live::{self, AskOptions};
use about_memory::serve::{ServeOptions, Server, redirect_file};
use about_memory::session::{Session, SessionOptions};
use clap::Args;
use dmd::analyze::program::{HeapBlocks, ProgramOptions};
use dmd::analyze::recording::Recording;
use dmd::analyze::{Dump, Mode, ReadOptions};
use memory_export::pprof;
use typed_heap::CoreFile;

use super::dump_limits::DumpLimits;
use super::export::profile::Making;
use super::html::{is_version_of_dumps, timeline};
use super::input::{Input, Reading};
use super::recorded::When;
use super::symbols::Symbols;
use super::{Failure, live_input, say, typed};

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory serve
  about-memory serve heap.fxsnapshot memory-report.json.gz
  about-memory serve 1234
  about-memory serve dmd.json.gz history.dmdrec
  about-memory serve core.1234                   # types, fields and who holds them, of a program with debug = 2
  about-memory serve before.fxsnapshot after.fxsnapshot --port 8123 --no-open
  about-memory serve heap.fxsnapshot --read-only --idle 1800

The page is for this user on this machine only: the server listens on 127.0.0.1, and each request needs a secret that
`serve` makes. To look from another machine, forward the port: ssh -L 8123:127.0.0.1:8123 host.

The server ends with Ctrl-C.";

/// How often the program looks whether it has to end.
const LOOK: Duration = Duration::from_millis(100);

#[derive(Args)]
pub(crate) struct Serve {
    /// Heap snapshots (.fxsnapshot), report files, DMD dumps and recordings, core files of programs under DMD, or process
    /// ids or names to measure.
    #[arg(value_name = "FILE|PID")]
    inputs: Vec<Input>,
    /// The port. [default: a free one]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Do not open the browser.
    #[arg(long)]
    no_open: bool,
    /// The page can change nothing: no buttons for processes, no import, no removal.
    #[arg(long)]
    read_only: bool,
    /// End when no page has been open and no request has run for this time.
    #[arg(long, value_name = "SECONDS", value_parser = live_input::seconds)]
    idle: Option<Duration>,
    /// Print the address as JSON in one line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    when: When,
    #[command(flatten)]
    symbols: Symbols,
    #[command(flatten)]
    reading: Reading,
}

impl Serve {
    pub(super) fn run(self) -> Result<(), Failure> {
        let is_over = Arc::new(AtomicBool::new(false));
        let cannot = |error: io::Error| Failure::File("cannot serve".to_owned(), error.into());
        live::note_ending(&is_over).map_err(cannot)?;
        let session = Session::new(SessionOptions::new());
        let options = ServeOptions::new().port(self.port).read_only(self.read_only);
        let server = Server::start(session.clone(), &options)
            .map_err(|error| Failure::File(format!("127.0.0.1:{}", self.port), error.into()))?;
        let reading = self.typed();
        server.types_of_processes(move |pid, path| {
            typed::saver(reading.clone(), Input::from(OsString::from(pid.to_string())))(path)
        });
        for input in &self.inputs {
            self.add(input, &session, &server)?;
        }
        let file = redirect_file(&std::env::temp_dir(), &server.url()).map_err(cannot)?;
        self.tell(&server, &file).map_err(Failure::Output)?;
        if !self.no_open && !open(&file) {
            say("no browser can be started; open the address above in one");
        }
        while !is_over.load(Ordering::Relaxed) && self.idle.is_none_or(|idle| server.idle_for() < idle) {
            std::thread::sleep(LOOK);
        }
        // A page that is open has a connection, whose thread holds the session.
        drop(server);
        session.end();
        Ok(())
    }

    fn add(&self, input: &Input, session: &Session, server: &Server) -> Result<(), Failure> {
        if let Some(pid) = input.process()? {
            let set = live::collect(&[pid], &AskOptions::new())
                .map_err(|error| live_input::failure(&[pid], error))?;
            server.add_measurement(format!("live measurement of process {pid}"), set, &[pid]);
            return Ok(());
        }
        if is_snapshot(input.path()) {
            session.open(input.path()).map_err(|error| Failure::File(input.name(), error.into()))?;
            return Ok(());
        }
        let name = input.path().file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_else(|| input.name());
        if !input.is_stdin() && Recording::is_at(input.path()) {
            let limits = self.reading.dump_options();
            let options = if self.when.is_chosen() {
                self.blocks(input, &limits)?.0
            } else {
                HtmlOptions::new().timeline(timeline(input.path(), &self.symbols, &limits)?)
            };
            server.add_stacks_with_files(name, &options, self.files(input));
            return Ok(());
        }
        if CoreFile::is_elf(input.path()) {
            return self.add_types(name, input, server);
        }
        match input.read(&self.reading) {
            Err(Failure::File(_, error)) if is_version_of_dumps(&error) && !input.is_stdin() => {
                let (options, mode) = self.blocks(input, &self.reading.dump_options())?;
                server.add_stacks_with_files(name.clone(), &options, self.files(input));
                if mode == Mode::Scan {
                    self.add_types(name, input, server)?;
                }
            }
            set => server.add_report(name, set?),
        }
        Ok(())
    }

    /// The blocks of a dump, or of a time of a recording.
    fn blocks(&self, input: &Input, limits: &ReadOptions) -> Result<(HtmlOptions, Mode), Failure> {
        let fix = |dump: &mut Dump| self.symbols.fix(dump, limits);
        let (dump, _) = self.when.read(input.path(), limits, None, fix)?;
        let mode = dump.mode();
        Ok((HtmlOptions::new().heap_blocks(HeapBlocks::new(dump, &ProgramOptions::new())), mode))
    }

    /// Adds the typed heap of a core file or a dump of scan mode.
    fn add_types(&self, name: String, input: &Input, server: &Server) -> Result<(), Failure> {
        let save = typed::saver(self.typed(), input.clone());
        let added = server.add_types(&format!("types of {name}"), save);
        added.map(drop).map_err(|error| Failure::File(input.name(), error.into()))
    }

    /// How typed heaps are read.
    fn typed(&self) -> typed::Reading {
        let limits = DumpLimits::of_bytes(self.reading.options().max_bytes);
        typed::Reading::new(self.symbols.clone(), limits)
    }

    /// Writes the stacks of a file for other tools. It reads the file again, which takes less than keeping it.
    fn files(
        &self,
        input: &Input,
    ) -> impl Fn(StacksFormat, Option<Window>, &mut dyn io::Write) -> Result<(), String> + Send + Sync + 'static
    {
        let (input, when, symbols) = (input.clone(), self.when.clone(), self.symbols.clone());
        let limits = DumpLimits::of_bytes(self.reading.options().max_bytes);
        move |format, window, out| {
            let is_pprof = format == StacksFormat::Pprof;
            let when = window.map_or_else(|| when.clone(), When::of_window);
            let making = Making {
                symbols: Some(&symbols),
                system_names: is_pprof,
                limits: &limits,
                when: &when,
                options: StacksOptions::new().types(is_pprof),
            };
            let mut made = making.made(&input, format).map_err(|failure| failure.lines().join("; "))?;
            made.write(format, &pprof::Options::new(), out).map(drop).map_err(|error| error.to_string())
        }
    }

    fn tell(&self, server: &Server, file: &Path) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            let (url, file) = (server.url(), file.display().to_string());
            writeln!(out, "{}", serde_json::json!({ "url": url, "file": file, "pid": std::process::id() }))?;
        } else {
            writeln!(out, "about:memory is at {}", server.url())?;
            writeln!(out, "The file {} leads there; only you can read it. Ctrl-C ends.", file.display())?;
        }
        out.flush()
    }
}

pub(super) fn is_snapshot(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "fxsnapshot")
}

/// Opens the file in the browser of the user's desktop, with the program that the desktop has for that. The address
/// itself would show the token in the list of processes.
fn open(file: &Path) -> bool {
    ["xdg-open", "open"].into_iter().any(|program| {
        let mut command = Command::new(program);
        command.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().is_ok()
    })
}
