//! `about-memory attach` and `about-memory detach`.

use std::path::{Path, PathBuf};

use clap::Args;
use dmd_attach::{AttachError, AttachRequest};

use super::input::InputArgument;
use super::run::library;
use super::sample_bytes;
use super::{Failure, say};

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory attach 1234
  about-memory attach my-server --sample 512KiB
  about-memory attach 1234 --record leak.dmdrec
  about-memory attach 1234 --wait-for-track
  sudo about-memory attach 1234

The process loads libdmd.so and records from now on. Afterwards, show, top, serve, save --dump, heap and leaks work as
for a program that `about-memory run` started. Blocks that the process allocated earlier stay unknown. One thread of
the process stops for some milliseconds; all others run on. If no thread reaches a safe moment in time, the command
fails and changes nothing. `about-memory detach PID` ends the attachment.

The process must belong to your user, or this program must run as root. The process must use the GNU C library. The
process itself writes the file of --record, as its own user and, if it is in a container, at a path in this container.";

pub(crate) const DETACH_EXAMPLES: &str = "\
Examples:
  about-memory detach 1234
  about-memory detach my-server

The process stops recording, and completes the file of `attach --record`. The library stays loaded, without a cost. The
next `about-memory attach` uses it again.";

#[derive(Args)]
pub(crate) struct AttachCommand {
    /// The process id or the name of a running process.
    #[arg(value_name = "PID")]
    process: InputArgument,
    /// Record a sample: one block per this many allocated bytes, on average. Bytes, or a number with KiB, MiB or GiB.
    /// Without this option, every block is recorded.
    #[arg(long, alias = "sample-bytes", group = "recorded", value_name = "SIZE", value_parser = sample_bytes::parse)]
    sample: Option<u64>,
    /// Record every allocation and every free into this file.
    #[arg(long, group = "recorded", value_name = "FILE")]
    record: Option<PathBuf>,
    /// Record nothing until `about-memory track` connects.
    #[arg(long, group = "recorded")]
    wait_for_track: bool,
    /// Attach even if the program filters its own system calls. The filter may end the process.
    #[arg(long)]
    with_filter: bool,
    /// The path of libdmd.so. [default: the library in this program, beside it, in ../lib, or in the target folder]
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct DetachCommand {
    /// The process id or the name of a running process.
    #[arg(value_name = "PID")]
    process: InputArgument,
}

impl AttachCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        let pid = process(&self.process)?;
        let contents = library::contents(self.library.as_deref())?;
        let mut request = AttachRequest::new(&contents, &socket_folder(pid)?);
        request.sample_bytes = self.sample.unwrap_or(0);
        request.waits = self.wait_for_track;
        request.despite_filter = self.with_filter;
        request.record = self.record.as_deref().map(absolute).transpose()?;
        match dmd_attach::attach(pid, &request) {
            Ok(reply) => {
                say(&format!(
                    "attached to {pid}: {} references in {} files changed; one thread was stopped for {:.1} ms",
                    reply.slots,
                    reply.objects,
                    reply.stopped.as_secs_f64() * 1e3
                ));
                for allocator in &reply.allocators {
                    say(&match &allocator.refusal {
                        None => {
                            format!("{} inside the program: its blocks are recorded, too", allocator.name)
                        }
                        Some(refusal) => {
                            format!("the blocks of {} are not recorded: {refusal}", allocator.name)
                        }
                    });
                }
                say(&match reply.heap_before {
                    Some(bytes) => format!(
                        "before attach: {} in use, as malloc counts (with headers and caches); these blocks are not recorded",
                        with_unit(bytes)
                    ),
                    None => {
                        "before attach: an unknown amount in use, as malloc keeps no count; these blocks are not recorded"
                            .to_owned()
                    }
                });
            }
            Err(AttachError::Preloaded) => {
                if self.record.is_some() {
                    return Err(failure(pid, &AttachError::Preloaded));
                }
                say(&format!("process {pid}: {}", AttachError::Preloaded));
            }
            Err(error) => return Err(failure(pid, &error)),
        }
        let user_of = |process| dmd_attach::user_and_variable(process, "").0;
        let user = user_of(pid);
        if user != user_of(std::process::id()) {
            say(&format!(
                "process {pid} belongs to user {user}: run the next commands with sudo -u '#{user}'"
            ));
        }
        if !dmd_attach::sees_same_files(pid) {
            say(&format!("process {pid} is in a container: run the next commands there"));
        }
        let next = match (&self.record, self.wait_for_track) {
            (Some(file), _) => format!("about-memory detach {pid}; about-memory leaks {}", file.display()),
            (None, true) => format!("about-memory track {pid}"),
            (None, false) => {
                format!("about-memory show {pid}, or about-memory save --dump {pid} dump.json.gz")
            }
        };
        say(&format!("next: {next}"));
        Ok(())
    }
}

impl DetachCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        let pid = process(&self.process)?;
        let reply = dmd_attach::detach(pid).map_err(|error| failure(pid, &error))?;
        say(&format!(
            "detached from {pid}: {} references restored; one thread was stopped for {:.1} ms",
            reply.slots,
            reply.stopped.as_secs_f64() * 1e3
        ));
        if reply.older_freed > 0 {
            say(&format!(
                "while attached, the process freed {} blocks from before the attachment: {}",
                reply.older_freed,
                with_unit(reply.older_freed_bytes)
            ));
        }
        Ok(())
    }
}

fn failure(pid: u32, error: &AttachError) -> Failure {
    Failure::File(format!("process {pid}"), anyhow::anyhow!("{}", shown(&error.to_string())))
}

/// Returns a text of another process with escaped control characters, so that it cannot control the terminal.
fn shown(text: &str) -> String {
    let escaped = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escaped).collect()
}

/// The process that an argument names: by its number, or by the name of the process or of its program.
fn process(argument: &InputArgument) -> Result<u32, Failure> {
    if let Some(pid) = argument.pid() {
        return Ok(pid);
    }
    let name = argument.name();
    match dmd_attach::processes_named(&name)[..] {
        [pid] => Ok(pid),
        [] => Err(Failure::File(
            name,
            anyhow::anyhow!("no process of this user has this name; use a process id"),
        )),
        ref pids => {
            let pids: Vec<_> = pids.iter().map(u32::to_string).collect();
            let pids = pids.join(", ");
            Err(Failure::Usage(format!("{name}: several processes have this name: {pids}; use a process id")))
        }
    }
}

/// The folder of the process's socket. If the process has the same user and sees the same files as this program, it is
/// the folder in which this program looks for sockets; otherwise the folder that the process's own user looks in.
fn socket_folder(pid: u32) -> Result<PathBuf, Failure> {
    let (user, runtime) = dmd_attach::user_and_variable(pid, "XDG_RUNTIME_DIR");
    let (own_user, _) = dmd_attach::user_and_variable(std::process::id(), "XDG_RUNTIME_DIR");
    if user == own_user && dmd_attach::sees_same_files(pid) {
        return memory_reporter::live::folder()
            .map_err(|error| Failure::File("the folder of sockets".to_owned(), error.into()));
    }
    Ok(match runtime.filter(|folder| folder.is_absolute()) {
        Some(folder) => folder.join("about-memory"),
        None => PathBuf::from(format!("/tmp/about-memory-{user}")),
    })
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::File(path.display().to_string(), error.into()))
}

fn with_unit(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.into_iter().find(|(shift, _)| bytes >> shift > 0) {
        Some((shift, unit)) => format!("{:.2} {unit}", bytes as f64 / f64::from(1 << shift)),
        None => format!("{bytes} B"),
    }
}
