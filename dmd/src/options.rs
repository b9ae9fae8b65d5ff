//! What `$DMD` and the const constructor can say.

use core::fmt;

/// What is recorded and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// All live blocks.
    Live,
    /// All live blocks, and who reported them. The default.
    DarkMatter,
    /// All live blocks, and how many were freed of each kind.
    Cumulative,
    /// All live blocks one by one, with their addresses and contents.
    Scan,
}

impl Mode {
    /// As it is written in `$DMD` and in dumps.
    pub fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::DarkMatter => "dark-matter",
            Self::Cumulative => "cumulative",
            Self::Scan => "scan",
        }
    }
}

/// Which blocks have an allocation stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stacks {
    /// Those that a sampler chooses: most bytes, few blocks. The default.
    Partial,
    /// All.
    Full,
}

impl Stacks {
    /// As it is written in `$DMD` and in dumps.
    pub fn name(self) -> &'static str {
        match self {
            Self::Partial => "partial",
            Self::Full => "full",
        }
    }
}

/// What the process is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Run {
    /// To be measured. The default.
    Normal,
    /// To try the tool: a built-in series of allocations and reports is checked, then the process ends.
    Test,
    /// To put load on the tool for a bounded time; then the process ends.
    Stress,
}

/// How to record. Not what Firefox can say: `max_frames`, `output`, `dump_at_exit`, `children`, `quiet`,
/// `verbose`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// What is recorded. Default: [`Mode::DarkMatter`].
    pub mode: Mode,
    /// Which blocks have a stack. Default: [`Stacks::Partial`]; always full in scan mode.
    pub stacks: Stacks,
    /// Blocks of fewer usable bytes are not recorded one by one: whenever their sum passes this
    /// size, the block at hand stands for that many bytes, and gets a stack. Default: none are sampled.
    pub sample_below: Option<usize>,
    /// After a dump, sizes of our own tables go to stderr. Default: no.
    pub show_dump_stats: bool,
    /// Frames kept of each stack, 1 to 256. Default: 24, Firefox's limit.
    pub max_frames: usize,
    /// Where a dump at the end of the process goes; `%p` is the process's number. A name without it
    /// is that of the first process, and children put their number before the extension.
    /// Default: `dmd-%p.json.gz` in the folder in which the process started.
    pub output: Option<&'static str>,
    /// Run the memory reporters and write a dump when the process ends. Default: no.
    pub dump_at_exit: bool,
    /// Programs that this one starts, and its forks, are recorded too. Default: yes.
    pub children: bool,
    /// No comments on stderr. Default: no.
    pub quiet: bool,
    /// Lines about what DMD does go to stderr though that is no terminal. Default: no.
    pub verbose: bool,
    /// What the process is for. Default: [`Run::Normal`].
    pub run: Run,
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

/// The most that `--max-frames` takes.
pub(crate) const MOST_FRAMES: usize = 256;

/// A word of `$DMD` that is not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadEntry<'a>(pub &'a [u8]);

impl fmt::Display for BadEntry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bad entry in the $DMD environment variable: '{}'.", self.0.escape_ascii())
    }
}

impl core::error::Error for BadEntry<'_> {}

impl Options {
    /// The defaults.
    pub const fn new() -> Self {
        Self {
            mode: Mode::DarkMatter,
            stacks: Stacks::Partial,
            sample_below: None,
            show_dump_stats: false,
            max_frames: 24,
            output: None,
            dump_at_exit: false,
            children: true,
            quiet: false,
            verbose: false,
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

    /// Sets [`max_frames`](Self::max_frames); what is out of range is brought into it.
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

    /// Reads the value of `$DMD`: `1`, or options with white space between them.
    ///
    /// # Errors
    ///
    /// The first word that is not exactly one of the options.
    pub fn parse(text: &'static [u8]) -> Result<Self, BadEntry<'static>> {
        let mut options = Self::new();
        if text == b"1" {
            return Ok(options);
        }
        let mut words =
            text.split(|byte| byte.is_ascii_whitespace() || *byte == 0x0b).filter(|word| !word.is_empty());
        words.try_for_each(|word| options.apply(word).ok_or(BadEntry(word)))?;
        if options.mode == Mode::Scan {
            options.stacks = Stacks::Full;
        }
        Ok(options)
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
                "live" => self.mode = Mode::Live,
                "dark-matter" | "normal" => self.mode = Mode::DarkMatter,
                "cumulative" => self.mode = Mode::Cumulative,
                "scan" => self.mode = Mode::Scan,
                "test" => self.run = Run::Test,
                "stress" => self.run = Run::Stress,
                _ => return None,
            },
            b"--stacks" => match value {
                "partial" => self.stacks = Stacks::Partial,
                "full" => self.stacks = Stacks::Full,
                _ => return None,
            },
            b"--sample-below" => self.sample_below = Some(number(value).filter(|bytes| *bytes >= 1)?),
            b"--show-dump-stats" => self.show_dump_stats = yes_or_no()?,
            b"--max-frames" => {
                self.max_frames = number(value).filter(|frames| (1..=MOST_FRAMES).contains(frames))?;
            }
            b"--output" => self.output = Some(value).filter(|path| !path.is_empty()),
            b"--dump-at-exit" => self.dump_at_exit = word.len() == name.len() || yes_or_no()?,
            b"--children" => self.children = yes_or_no()?,
            b"--quiet" => self.quiet = word.len() == name.len() || yes_or_no()?,
            b"--verbose" => self.verbose = word.len() == name.len() || yes_or_no()?,
            _ => return None,
        }
        (!(name == b"--output" && self.output.is_none())).then_some(())
    }
}

/// Decimal digits and nothing else.
fn number(text: &str) -> Option<usize> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}
