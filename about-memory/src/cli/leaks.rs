//! `about-memory leaks`.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args;
use dmd_analyze::AnalyzeError;
use dmd_analyze::program::{LeakOptions, Leaks, bytes};
use dmd_analyze::recording::Moment;
use regex::Regex;

use super::Failure;
use super::dump_limits::DumpLimits;
use super::program_view::{StackView, on_terminal};
use super::recorded::{self, DumpOrRecording};
use super::symbols::SymbolSearch;

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory leaks my-program.dmdrec
  about-memory leaks my-program.dmdrec --fail-above 0
  about-memory leaks my-program.dmdrec --fail-above 64KiB --ignore '^my_crate::cache'
  about-memory leaks my-server.dmdrec --at 34s
  about-memory leaks dmd.json.gz --json

A leak is a block that is live at the end of the recording, or in the dump. A server may free everything before it ends.
Then use --at to see the blocks of an earlier time, or `about-memory history FILE --growth A B` to see the growth between
two times. Two kinds of blocks are listed separately: blocks that Rust's library, the C library and the loader allocate
once for a process or a thread, and blocks that are older than the recording.

Exit status: 0 on success, 1 if a file cannot be read, 2 for wrong usage, 3 if leaks exceed the limit of --fail-above.";

/// Default number of stacks.
const STACKS: usize = 10;

#[derive(Args)]
pub(crate) struct LeaksCommand {
    /// The recording or the dump; `-` for standard input.
    file: PathBuf,
    /// Show the blocks at this time: `peak`, `end` or a time after the start such as `12.5s` or `1m30s`. Choose an
    /// earlier time if the program frees everything before it ends. [default: end]
    #[arg(long, value_name = "TIME")]
    at: Option<Moment>,
    /// Exit with status 3 if the leaks exceed this limit: a number of bytes (`64KiB`, `10 MiB`, `500B`) or of blocks
    /// (`10`, `0`).
    #[arg(long, alias = "fail-if", value_name = "BYTES|BLOCKS", value_parser = LeakLimit::parse)]
    fail_above: Vec<LeakLimit>,
    /// Leave out stacks with a frame that matches this regular expression. The text of a frame is
    /// `FUNCTION (FILE:LINE)`. Repeatable.
    #[arg(long, value_name = "REGEX")]
    ignore: Vec<Regex>,
    /// Count one-time allocations of libraries as leaks.
    #[arg(long)]
    known: bool,
    /// Show at most this many rows of each table. A row is a stack. [default: 10; all with --json]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Write JSON instead of text.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    view: StackView,
    #[command(flatten)]
    symbols: SymbolSearch,
    #[command(flatten)]
    limits: DumpLimits,
}

/// The limit on leaked bytes or blocks.
#[derive(Clone, Copy, Debug)]
enum LeakLimit {
    Bytes(u128),
    Blocks(u64),
}

impl LeakLimit {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || "must be a number of blocks such as 10, or of bytes such as 64KiB or 500B".to_owned();
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let shift = match unit.trim() {
            "" => return Ok(Self::Blocks(number)),
            "B" => 0,
            "KiB" => 10,
            "MiB" => 20,
            "GiB" => 30,
            _ => return Err(wrong()),
        };
        Ok(Self::Bytes(u128::from(number) << shift))
    }

    /// Returns the reason why leaks exceed the limit. `None` if they do not.
    fn exceeded(self, leaks: &Leaks) -> Option<String> {
        let (leaked, count) = (leaks.bytes(), leaks.blocks());
        let size = |bytes_of: u128| bytes(i128::try_from(bytes_of).unwrap_or(i128::MAX));
        match self {
            Self::Bytes(most) if leaked > most => {
                Some(format!("{} in {count} blocks leaked, more than {}", size(leaked), size(most)))
            }
            Self::Blocks(most) if count > most => {
                Some(format!("{count} blocks with {} leaked, more than {most}", size(leaked)))
            }
            _ => None,
        }
    }
}

impl LeaksCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        let failure = |error: AnalyzeError| Failure::File(self.file.display().to_string(), error.into());
        let limits = self.limits.options();
        let of_leaks = LeakOptions::new().known(self.known);
        let of_leaks = self.at.into_iter().fold(of_leaks, LeakOptions::at);
        let of_leaks = self
            .ignore
            .iter()
            .cloned()
            .fold(of_leaks, |options, rule| options.ignore(move |frame| rule.is_match(frame)));
        let leaks = match DumpOrRecording::read(&self.file, &limits)? {
            DumpOrRecording::Dump(_) if self.at.is_some_and(|at| at != Moment::End) => {
                return Err(failure(AnalyzeError::OneTime));
            }
            DumpOrRecording::Dump(mut dump) => {
                self.symbols.fix(&mut dump, &limits);
                Leaks::from_dump(*dump, &of_leaks).map_err(failure)?
            }
            DumpOrRecording::Recording(mut recording) => {
                let fix = |dump: &mut _| self.symbols.fix(dump, &limits);
                let leaks = Leaks::new(&mut recording, &of_leaks, fix).map_err(failure)?;
                recorded::say_warnings(&self.file, &recording);
                leaks
            }
        };
        let options = self.view.options(on_terminal());
        let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
        let written = match self.json {
            true => write!(out, "{}", leaks.json(self.limit.unwrap_or(usize::MAX))),
            false => write!(out, "{}", leaks.text(self.limit.unwrap_or(STACKS), &options)),
        };
        written.and_then(|()| out.flush()).map_err(Failure::Output)?;
        let name = self.file.display();
        let reasons: Vec<String> = self.fail_above.iter().filter_map(|most| most.exceeded(&leaks)).collect();
        match reasons.is_empty() {
            true => Ok(()),
            false => {
                Err(Failure::Exceeded(reasons.into_iter().map(|why| format!("{name}: {why}")).collect()))
            }
        }
    }
}
