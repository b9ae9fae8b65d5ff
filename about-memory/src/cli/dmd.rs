//! `about-memory dmd`.

use std::env;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use dmd_analyze::program::{HeapOverview, HolderKey, ResidentMemory};
use dmd_analyze::recording::Moment;
use dmd_analyze::{Analysis, AnalyzeOptions, ClampStats, Dump, StackFilter, Suggestions};
use memory_export::dmd::RecordingWindow;

use super::Failure;
use super::dump_limits::{self, DumpLimits};
use super::new_file;
use super::program_view::{ProgramView, on_terminal};
use super::recorded::BlockTime;
use super::spelling::frames;
use super::symbols::SymbolSearch;

/// Default number of suggestions.
const SUGGESTIONS: usize = 10;

/// Default number of records of each kind in the text for the author of a program.
const RECORDS: usize = 10;

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory dmd dmd.json.gz
  about-memory dmd dmd.json.gz --filter my_crate:: --limit 50
  about-memory dmd dmd.json.gz --all-frames --verbose
  about-memory dmd dmd.json.gz --fold '^rayon' --fold '^tokio::runtime'
  about-memory dmd dmd.json.gz --firefox --ignore-alloc-fns --max-frames 4
  about-memory dmd dmd.json.gz --resident --sort-by untouched
  about-memory dmd before.json.gz after.json.gz --sort-by num-blocks
  about-memory dmd dmd.json.gz --by crate,type,site
  about-memory dmd dmd.json.gz --by module --by size --estimate
  about-memory dmd dmd.json.gz --suggest
  about-memory dmd dmd.json.gz --suggest --at peak
  about-memory dmd my-program.dmdrec --at 12.5s
  about-memory dmd my-program.dmdrec --between 10s peak --by type
  ssh host cat dmd.json.gz | about-memory dmd -
  about-memory dmd dmd.json.gz --folded | inferno-flamegraph > graph.svg

For a Rust program, the text starts with the sites that hold the most memory. The stacks follow. Names are
short, `>` marks functions of the program's own workspace, and frames of allocators and of Rust's library
are folded. For a dump of Firefox, or with --firefox, the command prints the text of Firefox's dmd.py. The
options of dmd.py have the same meaning here and give the same output.";

#[derive(Args)]
pub(crate) struct DmdCommand {
    /// The dump, compressed or not, or the recording; `-` for standard input.
    file: PathBuf,
    /// A later dump or recording: show what changed from the first file to this one.
    file2: Option<PathBuf>,
    /// The file to write. [default: standard output, `-`]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    when: BlockTime,
    /// Frames to keep of each stack. Blocks whose kept frames are equal make one record.
    /// [default: all; 8 for the text of dmd.py, --json and flat tables; 24 with --classic]
    #[arg(long, short_alias = 'f', value_name = "1..24", value_parser = frames)]
    max_frames: Option<u16>,
    /// The order of records.
    #[arg(long, short, value_enum, default_value_t = DmdOrder::Usable)]
    sort_by: DmdOrder,
    /// Show resident memory. For blocks: the bytes that are in memory, swapped out, and untouched. For the process: its
    /// memory by owner.
    #[arg(long, conflicts_with_all = ["suggest", "firefox", "folded", "classic"])]
    resident: bool,
    /// Remove allocator frames from the start of each stack.
    #[arg(long, short = 'a')]
    ignore_alloc_fns: bool,
    #[command(flatten)]
    symbols: SymbolSearch,
    /// Rewrite the file of a scan dump: replace each word by the start of the block it points into, or by 0.
    #[arg(long, conflicts_with_all = ["at", "between"])]
    clamp_contents: bool,
    /// Print on standard error how many words --clamp-contents replaced.
    #[arg(long)]
    print_clamp_stats: bool,
    /// Replace the parts that differ from run to run, for tests.
    #[arg(long, hide = true)]
    filter_stacks_for_testing: bool,
    /// Show only entries that contain this text. An entry is an allocation stack; `!TEXT` shows the stacks without
    /// TEXT. Repeatable.
    #[arg(long, value_name = "TEXT", allow_negative_numbers = true)]
    filter: Vec<String>,
    /// Like --filter, but for the stacks of the reporters that reported a block. Repeatable.
    #[arg(long, value_name = "TEXT")]
    report_filter: Vec<String>,
    /// Show at most this many rows of each table. [default: 10, in trees only rows with at least 0.1 % of the whole;
    /// 999 for the text of dmd.py, for flat tables and for --json; all with --folded]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Distribute the blocks without a stack over the records of similar blocks. Estimated numbers have a `~`.
    #[arg(long)]
    estimate: bool,
    /// Group the blocks by this. One of `frame`, `module`, `reporter`, `size`, `type`, `crate` and `site`. The last
    /// three make a tree, and can be combined, such as `crate,type,site`. Repeatable.
    #[arg(long, value_name = "KEY", value_parser = DmdGrouping::parse, conflicts_with_all = ["folded", "classic", "suggest", "firefox"])]
    by: Vec<DmdGrouping>,
    /// Suggest memory reporters to write, for unreported memory or for all memory at the peak. A suggestion shows the
    /// type, the code that allocates it, and the code of the reporter. All amounts are estimates.
    #[arg(long, group = "form", conflicts_with_all = [
        "file2", "max_frames", "sort_by", "ignore_alloc_fns", "estimate", "report_filter",
    ])]
    suggest: bool,
    /// Write the text of Firefox's dmd.py. For a dump of Firefox, this text is the default.
    #[arg(long, group = "form")]
    firefox: bool,
    #[command(flatten)]
    view: ProgramView,
    /// Write JSON instead of text.
    #[arg(long, group = "form")]
    json: bool,
    /// Write folded stacks for programs that draw flame graphs.
    #[arg(long, group = "form")]
    folded: bool,
    /// Write the text of the first DMD (2013), with records of stack frames.
    #[arg(long, group = "form")]
    classic: bool,
    #[command(flatten)]
    limits: DumpLimits,
}

#[derive(Clone, Copy, ValueEnum)]
enum DmdOrder {
    Usable,
    Req,
    Slop,
    NumBlocks,
    Resident,
    Swapped,
    Untouched,
}

impl DmdOrder {
    /// Whether the order needs the resident bytes of blocks.
    fn is_of_pages(self) -> bool {
        matches!(self, Self::Resident | Self::Swapped | Self::Untouched)
    }
}

/// The keys that group the blocks of a table or a tree.
#[derive(Clone)]
enum DmdGrouping {
    Table(dmd_analyze::TableKey),
    Tree(Vec<HolderKey>),
}

impl DmdGrouping {
    fn parse(text: &str) -> Result<Self, String> {
        let table = match text {
            "frame" => Some(dmd_analyze::TableKey::Frame),
            "module" => Some(dmd_analyze::TableKey::Module),
            "reporter" => Some(dmd_analyze::TableKey::Reporter),
            "size" => Some(dmd_analyze::TableKey::Size),
            "type" => Some(dmd_analyze::TableKey::Type),
            _ => None,
        };
        if let Some(table) = table {
            return Ok(Self::Table(table));
        }
        let key = |key: &str| match key {
            "crate" => Ok(HolderKey::Crate),
            "type" => Ok(HolderKey::Type),
            "site" => Ok(HolderKey::Site),
            _ => Err("must be frame, module, reporter, size, type, or a list of crate,type,site".to_owned()),
        };
        text.split(',').map(key).collect::<Result<_, _>>().map(Self::Tree)
    }

    /// Returns the keys of a tree; `None` for a table. With `for_author`, the key `type` makes a tree instead of a
    /// table.
    fn keys(&self, for_author: bool) -> Option<&[HolderKey]> {
        match self {
            Self::Table(dmd_analyze::TableKey::Type) if for_author => Some(&[HolderKey::Type]),
            Self::Table(_) => None,
            Self::Tree(keys) => Some(keys),
        }
    }
}

impl DmdCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        let from_stdin = [Some(&self.file), self.file2.as_ref()];
        let from_stdin = from_stdin.into_iter().flatten().filter(|path| dump_limits::is_stdin(path)).count();
        if from_stdin > 1 {
            return Err(Failure::Usage("standard input can be given only once".to_owned()));
        }
        if self.json && self.has_trees(false) {
            return Err(Failure::Usage(
                "--json supports only tables by frame, module, reporter, size and type".to_owned(),
            ));
        }
        if from_stdin > 0 && self.clamp_contents {
            return Err(Failure::Usage("--clamp-contents rewrites a file, not standard input".to_owned()));
        }
        let is_of_end = self.file2.is_some() || self.firefox || self.classic || self.clamp_contents;
        let (first, overview) = self.read(&self.file, is_of_end.then_some(Moment::End))?;
        let needs_pages = self.needs_pages();
        if needs_pages {
            first.check_resident().map_err(|error| failure(&self.file, error))?;
        }
        let to_terminal = on_terminal() && self.output.is_none();
        let view = self.view.clone().options(to_terminal).resident(self.resident);
        let memory = self.resident.then(|| ResidentMemory::new(&first, &view));
        let mut memory = memory.transpose().map_err(|error| failure(&self.file, error))?;
        let of_rust = first.has_modules();
        let for_author = of_rust && !self.wants_another_form();
        let types_as_tree = of_rust && self.has_types();
        let options = self.options(for_author, types_as_tree);
        if self.suggest {
            let limit = self.limit.unwrap_or(SUGGESTIONS);
            let suggestions = Suggestions::filtered(first, limit, &self.filters())
                .map_err(|error| failure(&self.file, error))?;
            return self.write(|out| write!(out, "{suggestions}"));
        }
        let analysis = match &self.file2 {
            None => Analysis::new(first, &options),
            Some(path) => {
                let (second, _) = self.read(path, Some(Moment::End))?;
                if needs_pages {
                    second.check_resident().map_err(|error| failure(path, error))?;
                }
                if let Some(before) = memory.take() {
                    let after = ResidentMemory::new(&second, &view).map_err(|error| failure(path, error))?;
                    memory = Some(after.since(&before));
                }
                Analysis::difference(first, second, &options).map_err(|error| failure(path, error))?
            }
        };
        self.write(|out| {
            if for_author {
                if self.file2.is_none() {
                    write!(out, "{overview}")?;
                }
                if let Some(memory) = &memory {
                    writeln!(out, "{memory}")?;
                }
                write!(out, "{}", analysis.program_text(self.limit.unwrap_or(RECORDS), &view))
            } else if self.json {
                let json = analysis.json();
                match &memory {
                    Some(memory) => write!(out, "{}", json.resident(memory.json())),
                    None => write!(out, "{json}"),
                }
            } else if self.folded {
                write!(out, "{}", analysis.folded())
            } else if self.classic {
                write!(out, "{}", analysis.classic())
            } else if !self.by.is_empty() {
                if self.file2.is_none() && (of_rust || self.has_trees(false)) {
                    write!(out, "{overview}")?;
                }
                for keys in self.by.iter().filter_map(|by| by.keys(types_as_tree)) {
                    writeln!(out, "{}", analysis.holder_tree(keys, self.limit, &view))?;
                }
                write!(out, "{}", analysis.by_text())
            } else {
                write!(out, "{}", analysis.text(&arguments()))
            }
        })
    }

    /// Whether the output needs the resident bytes of blocks.
    fn needs_pages(&self) -> bool {
        self.resident || self.sort_by.is_of_pages()
    }

    /// Whether the user chose a form other than the text for the author of a program.
    fn wants_another_form(&self) -> bool {
        self.firefox || self.suggest || self.json || self.folded || self.classic || !self.by.is_empty()
    }

    /// Whether the output contains trees. With `for_author`, the key `type` makes a tree instead of a table.
    fn has_trees(&self, for_author: bool) -> bool {
        self.by.iter().any(|by| by.keys(for_author).is_some())
    }

    /// Whether views show the types of blocks. Types need whole stacks: options that shorten stacks switch types off.
    fn has_types(&self) -> bool {
        !self.json && self.max_frames.is_none() && !self.ignore_alloc_fns
    }

    fn options(&self, for_author: bool, types_as_tree: bool) -> AnalyzeOptions {
        let trees = self.has_trees(types_as_tree);
        let mut options = AnalyzeOptions::new()
            .sort_by(match self.sort_by {
                DmdOrder::Usable => dmd_analyze::RecordOrder::Usable,
                DmdOrder::Req => dmd_analyze::RecordOrder::Req,
                DmdOrder::Slop => dmd_analyze::RecordOrder::Slop,
                DmdOrder::NumBlocks => dmd_analyze::RecordOrder::NumBlocks,
                DmdOrder::Resident => dmd_analyze::RecordOrder::Resident,
                DmdOrder::Swapped => dmd_analyze::RecordOrder::Swapped,
                DmdOrder::Untouched => dmd_analyze::RecordOrder::Untouched,
            })
            .max_frames(self.max_frames(for_author || trees))
            .ignore_alloc_fns(self.ignore_alloc_fns)
            // Filters match whole stacks, so stacks stay whole if there is a filter.
            .fold(self.folded && !self.view.shows_all_frames() && self.filter.is_empty())
            .reporters(for_author)
            .types((for_author || trees) && self.has_types())
            // The summary and the trees must name the same holders with the same amounts.
            .estimate(self.estimate || for_author || types_as_tree && trees);
        if for_author || trees {
            // The summary and the trees need all records.
            options = options.limit(usize::MAX);
            if let Some(rows) = self.limit {
                options = options.row_limit(rows);
            }
        } else if let Some(limit) = self.limit.or(self.folded.then_some(usize::MAX)) {
            options = options.limit(limit).row_limit(limit);
        }
        if self.classic {
            options = options.by(dmd_analyze::TableKey::Frame);
        }
        for by in &self.by {
            match by {
                DmdGrouping::Table(table) if by.keys(types_as_tree).is_none() => options = options.by(*table),
                DmdGrouping::Table(_) | DmdGrouping::Tree(_) => {}
            }
        }
        options = options.for_testing(self.filter_stacks_for_testing);
        options = self.filters().into_iter().fold(options, AnalyzeOptions::filter);
        self.report_filter.iter().fold(options, |all, text| all.report_filter(StackFilter::new(text)))
    }

    fn filters(&self) -> Vec<StackFilter> {
        self.filter.iter().map(|text| StackFilter::new(text)).collect()
    }

    fn max_frames(&self, for_author: bool) -> usize {
        match self.max_frames {
            Some(frames) => usize::from(frames),
            None if self.folded || for_author => usize::MAX,
            None if self.classic => 24,
            None => AnalyzeOptions::MAX_FRAMES,
        }
    }

    /// Reads the blocks at the time that the user chose. If the user chose no time, reads the blocks at `default`, or
    /// without `default` at the file's usual time.
    fn read(&self, path: &Path, default: Option<Moment>) -> Result<(Dump, HeapOverview), Failure> {
        let options = self.limits.options();
        let fix = |dump: &mut Dump| self.symbols.fix(dump, &options);
        if !self.clamp_contents {
            // The resident bytes of blocks are known only for the end, so the end is the default time.
            let when = match self.needs_pages() && !self.when.is_chosen() {
                true => &BlockTime::within(RecordingWindow { from: None, to: Moment::End }),
                false => &self.when,
            };
            return when.read(path, &options, default, fix);
        }
        let (dump, stats) = dmd_analyze::clamp(path, &options).map_err(|error| failure(path, error))?;
        print_clamped(self.print_clamp_stats.then_some(stats));
        self.when.select_in_dump(dump, path, default, fix)
    }

    fn write(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        match self.output.as_ref().filter(|path| path.as_os_str() != "-") {
            None => {
                let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
                write(&mut out).and_then(|()| out.flush()).map_err(Failure::Output)
            }
            Some(path) => {
                // Stacks and sizes of a program are as private as the dump, so only this user may read the file.
                new_file::write(path, true, |out| write(out)).map_err(|error| {
                    Failure::File(path.display().to_string(), anyhow::anyhow!("cannot be written: {error}"))
                })
            }
        }
    }
}

/// Prints the messages of `dmd.py` about clamped contents. The numbers are printed only if `stats` is given.
fn print_clamped(stats: Option<ClampStats>) {
    let mut text = String::from("Creating block range list.\nClamping block contents.\n");
    if let Some(stats) = stats {
        text += &format!(
            "Results:
  Number of pointers already pointing to start of blocks: {}
  Number of pointers clamped to start of blocks: {}
  Number of non-null pointers not pointing into blocks clamped to null: {}
  Number of null pointers: {}
",
            stats.already_start, stats.to_start, stats.to_null, stats.null
        );
    }
    text += "Saving file.\n";
    // If stderr is closed, there is no place to report it.
    let _ = io::stderr().write_all(text.as_bytes());
}

fn failure(path: &Path, error: dmd_analyze::AnalyzeError) -> Failure {
    Failure::File(path.display().to_string(), error.into())
}

/// Returns the arguments for the second line of the text. A path is shortened to its last part.
fn arguments() -> Vec<String> {
    env::args_os()
        .skip(2)
        .map(|argument| {
            let argument = argument.to_string_lossy();
            argument.rsplit('/').next().unwrap_or_default().to_owned()
        })
        .collect()
}
