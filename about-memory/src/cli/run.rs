//! `about-memory run`.

mod black_box;
mod dumps;
pub(super) mod library;
mod meanwhile;
mod recording;
mod resident;
mod summary;
mod types;

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use about_memory::launch::LaunchObstacle;
use about_memory::live::CopyKeeper;
use about_memory::{launch, live, nearest_name};
use clap::{Args, ValueEnum};

use self::black_box::KeptDumps;
use self::dumps::DumpFiles;
use self::meanwhile::{DumpPlan, DumpThread};
use self::summary::SummaryFacts;
use self::types::{TypePlan, TypeText};
use super::{Failure, linked_allocators, sample_bytes, say};

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory run -- ls -l
  about-memory run --mode live --stacks partial -o ls.json.gz -- ls -l
  about-memory run --open -- target/release/my-program
  about-memory run --mode cumulative -o 'make-%p.json.gz' -- make
  about-memory run --sample -- my-server
  about-memory run --every 10s --when 'heap > 1 GiB' -- my-server
  about-memory run --sample --black-box=85%,keep=3,dir=/var/tmp/dumps -- my-server
  about-memory run --record my.dmdrec -- my-program
  about-memory run --types -- target/release/my-program
  about-memory run --types --at 12.5s -- target/release/my-program

The output and the exit status of the program stay the same. At the end, standard error names the dumps and
shows the code that held the most memory. Look at a dump with: about-memory show FILE
With --listen the program answers requests while it runs, such as `about-memory save --dump PID`.
A program that does not handle SIGTERM or SIGINT writes a dump before the signal ends it.
A recording has every allocation and every free, with time, stack and thread. Look at a recording with:
about-memory leaks FILE, about-memory history FILE. With --record, the program writes a dump only if -o is given.";

#[derive(Args)]
pub(crate) struct RunCommand {
    /// The data to record.
    #[arg(long, value_enum, default_value_t = RecordMode::DarkMatter)]
    mode: RecordMode,
    /// The blocks whose stacks are recorded: a sample (partial), or all blocks (full).
    #[arg(long, value_enum, default_value_t = StackChoice::Full)]
    stacks: StackChoice,
    /// Sample the blocks with fewer bytes than this: record one of these blocks each time the sum of their bytes
    /// reaches this number.
    #[arg(long, group = "recorded", value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..))]
    sample_below: Option<u64>,
    /// Record a sample: one block per this many allocated bytes, on average. Bytes, or a number with KiB, MiB or GiB.
    /// `--sample` without a number means 512KiB, which is cheap enough for production.
    #[arg(long, group = "recorded", value_name = "SIZE", num_args = 0..=1, require_equals = true, default_missing_value = sample_bytes::DEFAULT, value_parser = sample_bytes::parse)]
    sample: Option<u64>,
    /// Record nothing until `about-memory track` connects. Implies --listen.
    #[arg(long, group = "recorded", conflicts_with = "open")]
    wait_for_track: bool,
    /// Frames to keep of each stack. [default: 24]
    #[arg(long, value_name = "1..256", value_parser = clap::value_parser!(u16).range(1..=256))]
    max_frames: Option<u16>,
    /// The file to write. %p in its name becomes the process id. Without %p, child processes put their process id
    /// before the extension. [default: dmd-%p.json.gz, and no dump with --record]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Record every allocation and every free into this file. %p in its name works as in --output.
    #[arg(long, group = "recorded", value_name = "FILE")]
    record: Option<PathBuf>,
    /// Write dumps when the process is near the limit of its memory (cgroup, address space or machine), before the
    /// kernel kills it. WORDS are a share of the limit, the number of dumps to keep, their folder, and the most bytes
    /// on the disk. [default: 90%,keep=5,dir=.,max-disk=1GiB]
    #[arg(long, value_name = "WORDS", num_args = 0..=1, require_equals = true, default_missing_value = "90%", conflicts_with = "wait_for_track")]
    black_box: Option<String>,
    /// The path of libdmd.so. [default: the library in this program, beside this program, in ../lib, or in the target
    /// folder]
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
    #[command(flatten)]
    plan: DumpPlan,
    #[command(flatten)]
    types: TypePlan,
    /// Let DMD print its actions on standard error.
    #[arg(long = "dmd-messages", alias = "verbose", short_alias = 'v')]
    verbose: bool,
    /// Print no summary at the end.
    #[arg(long, short)]
    quiet: bool,
    /// Write a page of the dump into the dump's folder, and open the page in the browser.
    #[arg(long)]
    open: bool,
    /// The program and its arguments.
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RecordMode {
    /// Record live blocks
    Live,
    /// Record live blocks and the reporters that reported them
    #[value(alias = "normal")]
    DarkMatter,
    /// Record all blocks, including freed blocks
    Cumulative,
    /// Record each live block with its contents
    Scan,
    /// Run DMD's self-test instead of the program
    Test,
    /// Run DMD's stress test instead of the program
    Stress,
}

#[derive(Clone, Copy, ValueEnum)]
enum StackChoice {
    Partial,
    Full,
}

fn name(value: impl ValueEnum) -> String {
    value.to_possible_value().expect("no value is hidden").get_name().to_owned()
}

impl RunCommand {
    /// Runs the program and returns its exit status.
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        // `$ABOUT_MEMORY` is for the program, not for this process.
        memory_reporter::live::ignore_environment();
        let (program, arguments) = self.command.split_first().expect("one is required");
        if let Some(option) = program.to_str().and_then(|program| program.strip_prefix("--")) {
            return Err(unknown_option(option));
        }
        let library = library::find(self.library.as_deref())?;
        let output = self.output.clone().unwrap_or_else(|| PathBuf::from("dmd-%p.json.gz"));
        let dumps = DumpFiles::new("--output", &output)?;
        let recordings = self.record.as_deref().map(|file| DumpFiles::new("--record", file)).transpose()?;
        let kept = self.black_box.as_deref().map(KeptDumps::new).transpose()?;
        self.plan.check()?;
        let has_conditions = self.plan.has_conditions();
        self.types.check(has_conditions)?;
        let keeper = self.types.is_on().then(CopyKeeper::start).transpose();
        let keeper =
            keeper.map_err(|error| Failure::Usage(format!("--types: cannot create a socket: {error}")))?;
        let variable = self.variable(&output, keeper.as_ref())?;
        let failure =
            |reason: String| Failure::File(program.to_string_lossy().into_owned(), anyhow::anyhow!(reason));
        let file = launch::find(program).ok_or_else(|| failure("the program was not found".to_owned()))?;
        match launch::check(&file, &library) {
            Err(LaunchObstacle::OwnMalloc) if linked_allocators::has_hooks_for_malloc(&file) => {}
            checked => checked.map_err(|obstacle| failure(obstacle.to_string()))?,
        }
        // In the modes `test` and `stress`, the library tests itself instead of recording the program.
        let records = !matches!(self.mode, RecordMode::Test | RecordMode::Stress);
        if records {
            linked_allocators::plan_lines(&file).iter().for_each(|line| say(line));
        }

        let mut command = Command::new(program);
        command.args(arguments).env("DMD", variable).env("LD_PRELOAD", preloaded(&library));
        let answers = self.wait_for_track || self.types.copy_after().is_some();
        if let Some(words) = self.plan.listening(answers) {
            command.env("ABOUT_MEMORY", words);
        }
        let has_contents = matches!(self.mode, RecordMode::Scan);
        let mut meanwhile = None;
        let status = launch::run_with(&mut command, |pid| {
            meanwhile = DumpThread::start(&self.plan, &self.types, &output, pid, has_contents);
        });
        // While the program ran, it received the signals. Now a signal ends this process and removes temporary files.
        let _ = live::before_ending(|| {});
        if let Some(meanwhile) = meanwhile {
            meanwhile.end();
        }
        let status = status.map_err(|error| failure(format!("cannot be started: {error}")))?;
        let written = dumps.written();
        for path in &written {
            say(&format!("wrote {}", path.display()));
        }
        let last_kept = kept.and_then(|kept| kept.newest());
        if let Some(last) = &last_kept {
            say(&format!("the black box wrote {}", last.display()));
        }
        if written.is_empty() && last_kept.is_none() && self.writes_dump() && !self.wait_for_track && records
        {
            say(&match launch::ending_signal(status) {
                Some(signal) => {
                    format!("no dump: signal {signal} ended the program before it could write one")
                }
                None => format!(
                    "no dump: the program ended without running its exit handlers, restricted its own system calls, or \
                     cannot write {}",
                    output.display()
                ),
            });
        }
        if let Some(recordings) = recordings.filter(|_| records) {
            recording::print(&recordings.written(), self.quiet);
        }
        let types = keeper.and_then(|keeper| self.types.text(keeper, has_conditions));
        let of_types = |types: &TypeText| written.iter().find(|path| dumps.is_of(types.process, path));
        // If several processes wrote dumps, selects the process with the largest heap.
        let largest = || written.iter().max_by_key(|path| (heap_bytes(path, written.len()), size(path)));
        if let Some(largest) = types.as_ref().and_then(of_types).or_else(largest).or(last_kept.as_ref()) {
            let is_sample = self.sample_below.is_some() || self.sample.is_some();
            let facts = SummaryFacts { is_sample, at: self.types.at(), types: types.as_ref() };
            let shown = if self.quiet { Ok(()) } else { summary::print(largest, &facts) };
            let opened = if self.open { summary::open(largest) } else { Ok(()) };
            // This process returns the program's exit status, so these failures are only printed.
            [shown, opened].into_iter().filter_map(Result::err).for_each(|failure| {
                if let Failure::File(name, error) = failure {
                    say(&format!("{name}: {error:#}"));
                }
            });
        } else if let Some(types) = types.filter(|_| !self.quiet) {
            // A killed process writes no dump, but the copy of the process still exists.
            summary::print_types(&types);
        }
        Ok(launch::end_like(status))
    }

    /// Whether each process writes a dump at its end. With `--wait-for-track`, the result does not matter: no process
    /// writes a dump at its end.
    fn writes_dump(&self) -> bool {
        self.record.is_none() || self.output.is_some()
    }

    /// Returns the value of `$DMD`: words separated by white space. The words for the first process are last.
    fn variable(&self, output: &Path, keeper: Option<&CopyKeeper>) -> Result<OsString, Failure> {
        let mut words = vec![
            format!("--mode={}", name(self.mode)),
            format!("--stacks={}", name(self.stacks)),
            format!("--output={}", word("--output", output)?),
        ];
        if self.wait_for_track {
            words.push("--wait-for-track".to_owned());
        } else if self.writes_dump() {
            words.push("--dump-at-exit".to_owned());
        }
        if let Some(file) = &self.record {
            words.push(format!("--record={}", word("--record", file)?));
        }
        if let Some(keeper) = keeper {
            words.extend(self.types.words(keeper, self.plan.has_conditions())?);
        }
        words.extend(self.black_box.as_ref().map(|box_words| format!("--dump-near-limit={box_words}")));
        words.extend(self.sample.map(|bytes| format!("--sample-bytes={bytes}")));
        words.extend(self.sample_below.map(|bytes| format!("--sample-below={bytes}")));
        words.extend(self.max_frames.map(|frames| format!("--max-frames={frames}")));
        words.push(if self.verbose { "--verbose" } else { "--quiet" }.to_owned());
        let mut variable = OsString::from(words.join(" "));
        variable.push(launch::words_for_first_process());
        Ok(variable)
    }
}

/// The failure for a word that starts with `--` in the place of the program.
fn unknown_option(option: &str) -> Failure {
    let name = option.split('=').next().unwrap_or(option);
    let command = RunCommand::augment_args(clap::Command::new("run"));
    let options = command.get_arguments().filter_map(clap::Arg::get_long);
    Failure::Usage(match nearest_name(name, options) {
        Some(known) => format!("--{name}: no option of run has this name; did you mean --{known}?"),
        None => format!("--{name}: no option of run has this name; see about-memory run --help"),
    })
}

/// Returns a path as a part of a word of `$DMD`. A path that is not UTF-8 or contains white space is an error.
fn word<'a>(option: &str, file: &'a Path) -> Result<&'a str, Failure> {
    let name = file.to_str().filter(|path| !path.is_empty() && !path.contains(char::is_whitespace));
    name.ok_or_else(|| {
        Failure::Usage(format!("{option} {}: the name must be UTF-8 without white space", file.display()))
    })
}

/// The size in bytes of the largest dump that is read to compare heaps.
const MAX_COMPARED: u64 = 1 << 20;

/// Returns the heap of a dump at its peak, in bytes; 0 if there is only one dump. A dump that is too large to read
/// counts as the largest heap.
fn heap_bytes(path: &Path, dumps: usize) -> u64 {
    match size(path) {
        _ if dumps < 2 => 0,
        size if size > MAX_COMPARED => u64::MAX,
        _ => {
            let dump = dmd_analyze::read_with(path, &dmd_analyze::DumpReadOptions::new()).ok();
            dump.as_ref().and_then(dmd_analyze::Dump::peak).map_or(0, |peak| peak.bytes())
        }
    }
}

/// Returns the length of a file in bytes; 0 if the file cannot be read.
fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Returns the value of `$LD_PRELOAD`: this library, then the libraries that the variable already names.
fn preloaded(library: &Path) -> OsString {
    let mut all = library.as_os_str().to_owned();
    if let Some(others) = env::var_os("LD_PRELOAD").filter(|others| others != OsStr::new("")) {
        all.push(":");
        all.push(others);
    }
    all
}
