//! The options of `$DMD` and of the const constructor.

mod black_box;

use core::fmt;

pub use black_box::BlackBox;
pub use dmd_format::Mode;

/// Selects the blocks that get an allocation stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stacks {
    /// A sample of the blocks gets stacks: few blocks, which have most of the bytes. The default.
    Partial,
    /// All blocks get a stack.
    Full,
}

impl Stacks {
    /// The name in `$DMD` and in dumps.
    pub fn name(self) -> &'static str {
        match self {
            Self::Partial => "partial",
            Self::Full => "full",
        }
    }
}

/// The purpose of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Run {
    /// The process is measured. The default.
    Normal,
    /// DMD tests itself with a built-in series of allocations and reports, then ends the process.
    Test,
    /// DMD puts load on itself for a limited time, then ends the process.
    Stress,
}

/// The time at which the process makes a copy of itself for [`copy_to`](Options::copy_to).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CopyTime {
    /// When the heap falls from a peak, and at the end if the heap has not fallen. The default.
    Peak,
    /// At the end of the process.
    End,
    /// When a request asks for it.
    Request,
}

/// How to record. Firefox's DMD lacks `sample_bytes`, `seed`, `wait_for_track`, `max_frames`, `resident`, `output`,
/// `record`, `dump_at_exit`, `children`, `quiet`, `verbose`, `copy_to`, `copy_at` and `black_box`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Selects which blocks and data DMD records. Default: [`Mode::DarkMatter`].
    pub mode: Mode,
    /// Selects the blocks that get a stack. Default: [`Stacks::Partial`]; always full in scan mode.
    pub stacks: Stacks,
    /// DMD samples blocks with fewer usable bytes than this number. Whenever the sum of their usable bytes reaches this
    /// number, the current block represents this number of bytes and gets a stack. Default: DMD records every block.
    pub sample_below: Option<usize>,
    /// DMD records a block with the probability 1 - exp(-n / `sample_bytes`), where n is its requested size in bytes,
    /// and gives it a stack. Readers of the dump weigh each block, so that their sums are unbiased estimates. This
    /// option takes precedence over [`stacks`](Self::stacks) and [`sample_below`](Self::sample_below). Default: DMD
    /// records every block.
    pub sample_bytes: Option<usize>,
    /// Determines which blocks [`sample_bytes`](Self::sample_bytes) samples: runs with the same seed sample the same
    /// blocks. Default: each process draws its own seed, so that the errors of many processes or runs cancel out.
    pub seed: Option<u64>,
    /// Record nothing until `about-memory track` asks for it; then record in the mode [`Mode::Live`]. Default: no.
    pub wait_for_track: bool,
    /// Write the sizes of DMD's own tables to stderr after a dump. Default: no.
    pub show_dump_stats: bool,
    /// The maximum number of frames of a stack, 1 to 256. Default: 24, Firefox's limit.
    pub max_frames: usize,
    /// Write to each dump how many bytes of the blocks and of the mappings are in memory. This takes about 0.1 s for
    /// each GiB of resident memory. Default: yes.
    pub resident: bool,
    /// The path of the dump at the end of the process; `%p` is replaced by the process number. If the path has no
    /// `%p`, the first process uses it as it is, and other processes add their number before the extension. Default:
    /// `dmd-%p.json.gz` in the folder in which the process started.
    pub output: Option<&'static str>,
    /// Run the memory reporters and write a dump when the process ends. Default: no.
    pub dump_at_exit: bool,
    /// Also record programs that this process starts, and its forks. Default: yes.
    pub children: bool,
    /// Write no lines to stderr, except if the process fails or ends in the middle of an allocation. Default: no.
    pub quiet: bool,
    /// Write lines about DMD's work to stderr even if stderr is not a terminal. [`quiet`](Self::quiet) takes
    /// precedence. Default: no.
    pub verbose: bool,
    /// The path of the recording of all events, with `%p` and numbers as in [`output`](Self::output). A recording
    /// contains the stacks of all blocks, and DMD does not sample. Default: DMD makes no recording.
    pub record: Option<&'static str>,
    /// The socket of the reader that keeps copies of the process: an absolute path. Default: the process makes no copy
    /// by itself.
    pub copy_to: Option<&'static str>,
    /// The time at which the process makes a copy for the reader of `copy_to`. Default: `CopyTime::Peak`.
    pub copy_at: CopyTime,
    /// The black box, which writes dumps shortly before the process reaches the limit of its memory. Default: no box.
    pub black_box: Option<BlackBox>,
    /// The purpose of the process. Default: [`Run::Normal`].
    pub run: Run,
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

/// The largest value of `--max-frames`.
pub(crate) const MOST_FRAMES: usize = 256;

/// The options with a description of their values, for messages.
const TAKES: [(&str, &str); 18] = [
    ("--mode", "live, dark-matter, cumulative, scan, normal, test or stress"),
    ("--stacks", "partial or full"),
    ("--sample-below", "a number of bytes, 1 or more"),
    ("--sample-bytes", "a number of bytes, 1 or more, such as 512KiB"),
    ("--seed", "a number"),
    ("--wait-for-track", "yes or no; no value means yes"),
    ("--show-dump-stats", "yes or no"),
    ("--max-frames", "a number, 1 to 256"),
    ("--resident", "yes or no; no value means yes"),
    ("--output", "a path"),
    ("--record", "a path"),
    ("--copy-to", "a path"),
    ("--copy-at", "peak, end or request"),
    ("--dump-at-exit", "yes or no; no value means yes"),
    ("--dump-near-limit", BlackBox::TAKES),
    ("--children", "yes or no"),
    ("--quiet", "yes or no; no value means yes"),
    ("--verbose", "yes or no; no value means yes"),
];

/// A word of `$DMD` that is not an option, or has a bad value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BadEntry<'a> {
    /// The word, or the words that contradict each other.
    pub word: &'a [u8],
    /// The position of the word in `$DMD`, from 1; 0 for several words.
    pub number: usize,
}

/// The first sentence is Firefox's text.
impl fmt::Display for BadEntry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { word, number } = *self;
        write!(f, "Bad entry in the $DMD environment variable: '{}'.", word.escape_ascii())?;
        if number == 0 {
            return Ok(());
        }
        let end = word.iter().position(|byte| *byte == b'=').unwrap_or(word.len());
        let takes = TAKES.iter().find(|(name, _)| word.get(..end) == Some(name.as_bytes()));
        write!(f, " It is entry {number}. ")?;
        if let Some((name, values)) = takes {
            return write!(f, "{name} takes {values}.");
        }
        f.write_str("Entries are 1,")?;
        for (index, (name, _)) in TAKES.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma} {name}")?;
        }
        f.write_str("; 0, off or no switches DMD off.")
    }
}

impl core::error::Error for BadEntry<'_> {}

impl Options {
    /// The default options.
    pub const fn new() -> Self {
        Self {
            mode: Mode::DarkMatter,
            stacks: Stacks::Partial,
            sample_below: None,
            sample_bytes: None,
            seed: None,
            wait_for_track: false,
            show_dump_stats: false,
            max_frames: 24,
            resident: true,
            output: None,
            dump_at_exit: false,
            children: true,
            quiet: false,
            verbose: false,
            record: None,
            copy_to: None,
            copy_at: CopyTime::Peak,
            black_box: None,
            run: Run::Normal,
        }
    }

    /// Sets [`mode`](Self::mode).
    #[must_use]
    pub const fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets [`stacks`](Self::stacks).
    #[must_use]
    pub const fn stacks(mut self, stacks: Stacks) -> Self {
        self.stacks = stacks;
        self
    }

    /// Sets [`sample_below`](Self::sample_below).
    #[must_use]
    pub const fn sample_below(mut self, bytes: usize) -> Self {
        self.sample_below = Some(bytes);
        self
    }

    /// Sets [`sample_bytes`](Self::sample_bytes); 0 counts as 1.
    #[must_use]
    pub const fn sample_bytes(mut self, bytes: usize) -> Self {
        self.sample_bytes = Some(if bytes == 0 { 1 } else { bytes });
        self
    }

    /// Sets [`seed`](Self::seed).
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets [`wait_for_track`](Self::wait_for_track).
    #[must_use]
    pub const fn wait_for_track(mut self, wait: bool) -> Self {
        self.wait_for_track = wait;
        self
    }

    /// Sets [`max_frames`](Self::max_frames); a value outside of 1 to 256 is changed to the nearest limit.
    #[must_use]
    pub const fn max_frames(mut self, frames: usize) -> Self {
        self.max_frames = if frames == 0 {
            1
        } else if frames > MOST_FRAMES {
            MOST_FRAMES
        } else {
            frames
        };
        self
    }

    /// Sets [`resident`](Self::resident).
    #[must_use]
    pub const fn resident(mut self, resident: bool) -> Self {
        self.resident = resident;
        self
    }

    /// Sets [`dump_at_exit`](Self::dump_at_exit).
    #[must_use]
    pub const fn dump_at_exit(mut self, dump: bool) -> Self {
        self.dump_at_exit = dump;
        self
    }

    /// Sets [`output`](Self::output).
    #[must_use]
    pub const fn output(mut self, path: &'static str) -> Self {
        self.output = Some(path);
        self
    }

    /// Sets [`quiet`](Self::quiet).
    #[must_use]
    pub const fn quiet(mut self, quiet: bool) -> Self {
        self.quiet = quiet;
        self
    }

    /// Sets [`verbose`](Self::verbose).
    #[must_use]
    pub const fn verbose(mut self, verbose: bool) -> Self {
        self.verbose = verbose;
        self
    }

    /// Sets [`record`](Self::record).
    #[must_use]
    pub const fn record(mut self, path: &'static str) -> Self {
        self.record = Some(path);
        self
    }

    /// Sets [`black_box`](Self::black_box).
    #[must_use]
    pub const fn black_box(mut self, black_box: BlackBox) -> Self {
        self.black_box = Some(black_box);
        self
    }

    /// Whether this value of `$DMD` switches DMD off: `0`, `off`, `no`, or an empty value.
    pub fn is_off(text: &[u8]) -> bool {
        matches!(text.trim_ascii(), b"" | b"0" | b"off" | b"no")
    }

    /// Reads the value of `$DMD`: `1`, or options separated by white space.
    ///
    /// # Errors
    ///
    /// Returns the first word that is not exactly one of the options, `--record` together with `--sample-below`,
    /// `--sample-bytes` or `--wait-for-track`, or `--dump-near-limit` together with `--wait-for-track`.
    pub fn parse(text: &'static [u8]) -> Result<Self, BadEntry<'static>> {
        let mut options = Self::new();
        if text == b"1" {
            return Ok(options);
        }
        let words =
            text.split(|byte| byte.is_ascii_whitespace() || *byte == 0x0b).filter(|word| !word.is_empty());
        let apply = |(at, word)| options.apply(word).ok_or(BadEntry { word, number: at + 1 });
        words.enumerate().try_for_each(apply)?;
        options.sample_nothing_in_tests();
        if options.mode == Mode::Scan || options.record.is_some() {
            options.stacks = Stacks::Full;
        }
        if options.record.is_some() {
            // A recording contains every block, so options that leave blocks out contradict `--record`.
            let refused: [(bool, &[u8]); 3] = [
                (options.sample_below.is_some(), b"--record with --sample-below"),
                (options.sample_bytes.is_some(), b"--record with --sample-bytes"),
                (options.wait_for_track, b"--record with --wait-for-track"),
            ];
            if let Some((_, words)) = refused.into_iter().find(|(is_refused, _)| *is_refused) {
                return Err(BadEntry { word: words, number: 0 });
            }
        }
        if options.black_box.is_some() && options.wait_for_track {
            // While DMD waits, it records no block that a dump could show.
            return Err(BadEntry { word: b"--dump-near-limit with --wait-for-track", number: 0 });
        }
        Ok(options)
    }

    /// Switches sampling and waiting off for a test of DMD: the test checks every block.
    pub(crate) fn sample_nothing_in_tests(&mut self) {
        if self.run != Run::Normal {
            (self.sample_below, self.sample_bytes, self.wait_for_track) = (None, None, false);
        }
    }

    fn apply(&mut self, word: &'static [u8]) -> Option<()> {
        let (name, value) = match word.iter().position(|byte| *byte == b'=') {
            Some(at) => (word.get(..at)?, core::str::from_utf8(word.get(at + 1..)?).ok()?),
            None => (word, ""),
        };
        let yes_or_no = || match value {
            "yes" => Some(true),
            "no" => Some(false),
            _ => None,
        };
        match name {
            b"--mode" => match value {
                "normal" => self.mode = Mode::DarkMatter,
                "test" => self.run = Run::Test,
                "stress" => self.run = Run::Stress,
                _ => self.mode = Mode::named(value)?,
            },
            b"--stacks" => match value {
                "partial" => self.stacks = Stacks::Partial,
                "full" => self.stacks = Stacks::Full,
                _ => return None,
            },
            b"--sample-below" => self.sample_below = Some(number(value).filter(|bytes| *bytes >= 1)?),
            b"--sample-bytes" => self.sample_bytes = Some(bytes(value).filter(|bytes| *bytes >= 1)?),
            b"--seed" => self.seed = Some(number(value).filter(|_| !value.is_empty())? as u64),
            b"--wait-for-track" => self.wait_for_track = word.len() == name.len() || yes_or_no()?,
            b"--show-dump-stats" => self.show_dump_stats = yes_or_no()?,
            b"--max-frames" => {
                self.max_frames = number(value).filter(|frames| (1..=MOST_FRAMES).contains(frames))?;
            }
            b"--resident" => self.resident = word.len() == name.len() || yes_or_no()?,
            b"--output" => self.output = Some(value).filter(|path| !path.is_empty()),
            b"--record" => self.record = Some(Some(value).filter(|path| !path.is_empty())?),
            b"--copy-to" => self.copy_to = Some(Some(value).filter(|path| !path.is_empty())?),
            b"--copy-at" => {
                self.copy_at = match value {
                    "peak" => CopyTime::Peak,
                    "end" => CopyTime::End,
                    "request" => CopyTime::Request,
                    _ => return None,
                };
            }
            b"--dump-at-exit" => self.dump_at_exit = word.len() == name.len() || yes_or_no()?,
            b"--dump-near-limit" => {
                let is_bare = word.len() == name.len();
                self.black_box = Some(if is_bare { BlackBox::new() } else { BlackBox::parse(value)? });
            }
            b"--children" => self.children = yes_or_no()?,
            b"--quiet" => self.quiet = word.len() == name.len() || yes_or_no()?,
            b"--verbose" => self.verbose = word.len() == name.len() || yes_or_no()?,
            _ => return None,
        }
        (!(name == b"--output" && self.output.is_none())).then_some(())
    }
}

/// Parses a number of bytes, with or without a unit.
fn bytes(text: &str) -> Option<usize> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
    let unit = units.iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)));
    let (digits, shift) = unit.unwrap_or((text, 0));
    number(digits)?.checked_mul(1 << shift)
}

/// Parses a number that consists of decimal digits only.
fn number(text: &str) -> Option<usize> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}
