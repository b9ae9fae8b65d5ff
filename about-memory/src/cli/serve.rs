//! `about-memory serve`: a live page in the browser.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use about_memory::live::{self, AskOptions, EndSignals};
use about_memory::serve::{
    Displays, Listen, OpenedStacks, ServeOptions, Server, change_redirect, redirect_file,
};
use about_memory::session::{Session, SessionOptions};
use about_memory::temporary::TemporaryFolder;
use about_memory::{HeapFacts, HtmlOptions};
use clap::Args;
use dmd_analyze::program::HeapOverview;
use dmd_analyze::recording::Recording;
use dmd_analyze::{Dump, Mode};
use memory_export::dmd::{ProfileOptions, RecordingWindow};
use memory_export::{ProfileFormat, pprof};
use typed_heap::CoreFile;

use super::dump_limits::DumpLimits;
use super::export::profile::StackConversion;
use super::file_kind::FileKind;
use super::html::{has_blocks, timeline};
use super::input::{InputArgument, ReadLimits};
use super::progress::WorkNotice;
use super::recorded::BlockTime;
use super::symbols::SymbolSearch;
use super::{Failure, heap, live_input, say};

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory serve
  about-memory serve heap.fxsnapshot memory-report.json.gz
  about-memory serve 1234
  about-memory serve dmd.json.gz history.dmdrec
  about-memory serve core.1234                   # the types and fields of a program with debug = 2
  about-memory serve before.fxsnapshot after.fxsnapshot --port 8123 --no-open
  about-memory serve heap.fxsnapshot --read-only --idle 30m
  about-memory serve heap.fxsnapshot --unix $XDG_RUNTIME_DIR/am   # prints the ssh command for the other machine
  about-memory serve 1234 --allow-remote 192.0.2.7 --host-name build.example --port 8123

The page is for this user on this machine only: the server listens on 127.0.0.1, and each request needs a token that
`serve` makes. To look from another machine, forward the port: ssh -L 8123:127.0.0.1:8123 host. Or use --unix and forward
the socket: other users of this machine cannot connect to it. --allow-remote lets other machines in without ssh. Then
anyone who has the address with its token can read the page, and so can anyone who can read the network traffic.

The server ends with Ctrl-C.";

/// How often the program checks whether it must end.
const LOOK: Duration = Duration::from_millis(100);
/// The time that the program has to end by itself after a signal. It may be reading a long file.
const GRACE: Duration = Duration::from_secs(5);

#[derive(Args)]
pub(crate) struct ServeCommand {
    /// Heap snapshots (.fxsnapshot), report files, DMD dumps and recordings, core files of programs under DMD, or
    /// process ids or names to measure.
    #[arg(value_name = "FILE|PID")]
    inputs: Vec<InputArgument>,
    /// The port. With --unix, the port that ssh forwards. [default: a free port; 8123 with --unix]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Listen at a Unix socket that only this user can connect to, for ssh -L PORT:PATH.
    #[arg(long, value_name = "PATH", conflicts_with = "allow_remote")]
    unix: Option<PathBuf>,
    /// Listen at an address that other machines reach: 192.0.2.7, or 0.0.0.0 for all addresses. Implies --read-only and
    /// --anonymize. Nothing is encrypted; ssh -L is safer.
    #[arg(long, value_name = "ADDRESS", requires = "host_names")]
    allow_remote: Option<IpAddr>,
    /// A name or an address under which browsers reach this machine. Requests with another name are refused.
    #[arg(long = "host-name", value_name = "NAME", requires = "allow_remote")]
    host_names: Vec<String>,
    /// Do not open the browser.
    #[arg(long)]
    no_open: bool,
    /// Serve a page that cannot change anything: without buttons for processes, import and removal.
    #[arg(long)]
    read_only: bool,
    /// Leave private data out of the names in reports. The page cannot change this.
    #[arg(long)]
    anonymize: bool,
    /// Keep the last N reports and the last N stacks that pages requested. [default: 50 reports, 20 stacks]
    #[arg(long, value_name = "N")]
    keep: Option<NonZeroUsize>,
    /// End after this time without an open page or a request. Seconds, or a number with ms, s, m or h.
    #[arg(long, value_name = "TIME", value_parser = live_input::seconds)]
    idle: Option<Duration>,
    /// Your own groups and labels for heap snapshots: JSON with `census`, `label` and `tree-map`. Each contains
    /// displays in the format of Firefox's devtools.memory.custom-census-displays.
    #[arg(long, value_name = "FILE")]
    displays: Option<PathBuf>,
    /// Write JSON instead of text. The JSON contains the address, in one line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    when: BlockTime,
    #[command(flatten)]
    symbols: SymbolSearch,
    #[command(flatten)]
    reading: ReadLimits,
}

impl ServeCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        let cannot = |error: io::Error| Failure::File("cannot serve".to_owned(), error.into());
        let ending = EndSignals::new(GRACE, || {}).map_err(cannot)?;
        let session = Session::new(SessionOptions::new());
        let server = Server::start(session.clone(), &self.options())
            .map_err(|error| Failure::File(self.place(), error.into()))?;
        let reading = self.typed();
        server.types_of_processes(move |pid, path| {
            heap::saver(reading.clone(), InputArgument::from(OsString::from(pid.to_string())))(path)
        });
        let stacks = self.stacks();
        server.open_stacks_by(move |path| stacks.open(path));
        if let Some(path) = &self.displays {
            let text = std::fs::read_to_string(path).map_err(anyhow::Error::from);
            let displays = text.and_then(|text| Displays::from_json(&text).map_err(anyhow::Error::msg));
            let displays = displays.map_err(|error| Failure::File(path.display().to_string(), error));
            server.offer(displays?);
        }
        for input in &self.inputs {
            // On a terminal, reading a recording already shows a progress bar.
            let has_bar = io::stderr().is_terminal() && Recording::is_at(input.path());
            let reading = format!("reading {}; the page opens afterwards", input.name());
            let notice = (!has_bar).then(|| WorkNotice::start(reading));
            self.add(input, &session, &server)?;
            drop(notice);
        }
        // A socket needs no file with the address: the browser is on another machine.
        let folder = TemporaryFolder::new().map_err(cannot)?;
        let mut url = server.one_time_url();
        let file = match self.unix {
            None => Some(redirect_file(folder.path(), &url).map_err(cannot)?),
            Some(_) => None,
        };
        self.tell(&server, file.as_deref()).map_err(Failure::Output)?;
        if let Some(address) = self.allow_remote {
            say(&format!(
                "warning: other machines reach this page at {address}. Nothing is encrypted: anyone who can read the \
                 network traffic can read the page; ssh -L encrypts it. Anyone who has the address with its token can read it, too"
            ));
        }
        if let Some(file) = file.as_deref().filter(|_| !self.no_open) {
            open(file);
        }
        while !ending.has_begun() && self.idle.is_none_or(|idle| server.idle_for() < idle) {
            std::thread::sleep(LOOK);
            // The file opens the page again after its code was used.
            let next = server.one_time_url();
            if let Some(file) = file.as_deref().filter(|_| next != url) {
                // The server has more to keep than this file: snapshots, stacks and recordings.
                if let Err(error) = change_redirect(file, &next) {
                    say(&format!(
                        "the file {} cannot open the page again ({error}); open the address above in a browser",
                        file.display()
                    ));
                }
                url = next;
            }
        }
        // An open page keeps a connection whose thread holds the session, so the session is ended explicitly.
        drop(server);
        session.end();
        Ok(())
    }

    fn options(&self) -> ServeOptions {
        let listen = match (&self.unix, self.allow_remote) {
            (Some(path), _) => Listen::Unix(path.clone()),
            (None, Some(address)) => Listen::Remote { address, host_names: self.host_names.clone() },
            (None, None) => Listen::Loopback,
        };
        let options = ServeOptions::new().listen(listen).port(self.port);
        let options = options.read_only(self.read_only).anonymize(self.anonymize);
        self.keep.map_or(options.clone(), |most| options.keep(most))
    }

    /// Returns the address or the socket of the server, for a message.
    fn place(&self) -> String {
        let address = self.allow_remote.unwrap_or(Ipv4Addr::LOCALHOST.into());
        let address = SocketAddr::new(address, self.port);
        self.unix.as_ref().map_or_else(|| address.to_string(), |path| path.display().to_string())
    }

    fn add(&self, input: &InputArgument, session: &Session, server: &Server) -> Result<(), Failure> {
        if let Some(pid) = input.process()? {
            let anonymize = self.anonymize || self.allow_remote.is_some();
            let set = live::collect(&[pid], &AskOptions::new().anonymize(anonymize))
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
        let stacks = StackOpener { when: self.when.clone(), ..self.stacks() };
        if !input.is_stdin() && Recording::is_at(input.path()) {
            let (options, _) = stacks.options(input.path())?;
            server.add_stacks(name, stacks.opened(options, input));
            return Ok(());
        }
        if CoreFile::is_elf(input.path()) {
            return self.add_types(name, input, server);
        }
        match input.read(&self.reading) {
            Err(Failure::File(file, error)) if has_blocks(&file, &error) && !input.is_stdin() => {
                let (options, mode) = stacks.options(input.path())?;
                server.add_stacks(name.clone(), stacks.opened(options, input));
                if mode == Some(Mode::Scan) {
                    self.add_types(name, input, server)?;
                }
            }
            set => server.add_report(name, set?),
        }
        Ok(())
    }

    /// Returns the settings for files that a page sends, or that a process writes for a page. The page shows the blocks
    /// at the usual time of the file.
    fn stacks(&self) -> StackOpener {
        let limits = DumpLimits::with_max_bytes(self.reading.max_bytes());
        StackOpener { when: BlockTime::default(), symbols: self.symbols.clone(), limits }
    }

    /// Adds the typed heap of a core file or a dump of scan mode.
    fn add_types(&self, name: String, input: &InputArgument, server: &Server) -> Result<(), Failure> {
        let save = heap::saver(self.typed(), input.clone());
        let added = server.add_types(&format!("types of {name}"), save);
        added.map(drop).map_err(|error| Failure::File(input.name(), error.into()))
    }

    /// Returns the settings for reading typed heaps.
    fn typed(&self) -> heap::TypedHeapReader {
        let limits = DumpLimits::with_max_bytes(self.reading.max_bytes());
        heap::TypedHeapReader::new(self.symbols.clone(), limits)
    }

    fn tell(&self, server: &Server, file: Option<&Path>) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let url = server.url();
        if self.json {
            let of = |path: Option<&Path>| path.map(|path| path.display().to_string());
            let (file, socket) = (of(file), of(self.unix.as_deref()));
            let line =
                serde_json::json!({ "url": url, "file": file, "socket": socket, "pid": std::process::id() });
            writeln!(out, "{line}")?;
        } else if let Some(path) = &self.unix {
            let port = server.address().port();
            writeln!(
                out,
                "about:memory is at the socket {}. Run this on the machine of your browser:",
                path.display()
            )?;
            writeln!(out, "  ssh -L {port}:{} THIS_HOST", std::path::absolute(path)?.display())?;
            writeln!(out, "Then open {url} there. Ctrl-C ends the server.")?;
        } else {
            writeln!(out, "about:memory is at {url}")?;
            if let Some(file) = file {
                writeln!(
                    out,
                    "The file {} opens this page; only you can read it. Ctrl-C ends the server.",
                    file.display()
                )?;
            }
        }
        out.flush()
    }
}

/// The settings for reading dumps and recordings.
#[derive(Clone)]
struct StackOpener {
    when: BlockTime,
    symbols: SymbolSearch,
    limits: DumpLimits,
}

impl StackOpener {
    fn dump(&self, path: &Path) -> Result<(Dump, HeapOverview), Failure> {
        let limits = self.limits.options();
        let fix = |dump: &mut Dump| self.symbols.fix(dump, &limits);
        self.when.read(path, &limits, None, fix)
    }

    /// Returns the contents of a file for the page, and the mode of a dump.
    fn options(&self, path: &Path) -> Result<(HtmlOptions, Option<Mode>), Failure> {
        if Recording::is_at(path) && !self.when.is_chosen() {
            let timeline = timeline(path, &self.symbols, &self.limits.options())?;
            let facts = HeapFacts::from_timeline(&timeline);
            return Ok((HtmlOptions::new().timeline(timeline).heap_facts(facts), None));
        }
        let (dump, overview) = self.dump(path)?;
        let mode = dump.mode();
        let facts = HeapFacts::from_dump(&dump, &overview);
        Ok((HtmlOptions::new().dump(dump).heap_facts(facts), Some(mode)))
    }

    /// Opens a file that a page sent, or that a process wrote for a page.
    fn open(&self, path: &Path) -> Result<OpenedStacks, String> {
        let (options, _) = self.options(path).map_err(|failure| reason(path, failure))?;
        Ok(self.opened(options, &InputArgument::from(path.as_os_str().to_owned())))
    }

    fn opened(&self, options: HtmlOptions, input: &InputArgument) -> OpenedStacks {
        let (of, path) = (self.clone(), input.path().to_owned());
        let blocks = move || of.dump(&path).map(|(dump, _)| dump).map_err(|failure| reason(&path, failure));
        OpenedStacks::new(options).files(self.files(input)).blocks(blocks)
    }

    /// Returns a function that writes the stacks of a file for other tools. It reads the file again, because keeping
    /// the contents would take more memory.
    fn files(
        &self,
        input: &InputArgument,
    ) -> impl Fn(ProfileFormat, Option<RecordingWindow>, &mut dyn io::Write) -> Result<(), String>
    + Send
    + Sync
    + 'static {
        let (of, input) = (self.clone(), input.clone());
        move |format, window, out| {
            let words = |failure: Failure| reason(input.path(), failure);
            let is_pprof = format == ProfileFormat::Pprof;
            let when = window.map_or_else(|| of.when.clone(), BlockTime::within);
            let making = StackConversion {
                symbols: Some(&of.symbols),
                system_names: is_pprof,
                limits: &of.limits,
                when: &when,
                options: ProfileOptions::new().types(is_pprof),
            };
            let mut made = making.made(&input, format).map_err(words)?;
            made.write(format, &pprof::PprofOptions::new(), out).map(drop).map_err(|error| error.to_string())
        }
    }
}

/// Returns the reason why a file cannot be read, without the file's folder. The reader of the page does not know the
/// folder.
fn reason(path: &Path, failure: Failure) -> String {
    let text = failure.lines(FileKind::SHOWN).join("; ");
    match path.file_name() {
        Some(name) => text.replace(&*path.to_string_lossy(), &name.to_string_lossy()),
        None => text,
    }
}

pub(super) fn is_snapshot(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "fxsnapshot")
}

/// Opens the file in the user's browser, by the desktop's own program. Prints a line if that program is missing or
/// fails. The file contains the address, because the address as an argument would show the token in the list of
/// processes.
fn open(file: &Path) {
    let file = file.to_owned();
    // Some of these programs run as long as the browser. A thread waits for the program.
    let wait = move || {
        let start = |program: &str| {
            let mut command = Command::new(program);
            command.arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command.status().map(|status| (program.to_owned(), status))
        };
        let reason = match start("xdg-open").or_else(|_| start("open")) {
            Ok((_, status)) if status.success() => return,
            Ok((program, status)) => format!("{program} ended with {status}"),
            Err(error) => format!("xdg-open cannot be started: {error}"),
        };
        say(&format!("no browser was opened ({reason}); open the address above in a browser"));
    };
    if let Err(error) = std::thread::Builder::new().name("browser".to_owned()).spawn(wait) {
        say(&format!("no browser was opened ({error}); open the address above in a browser"));
    }
}
