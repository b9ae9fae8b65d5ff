//! Options of views for the author of a Rust program.

use std::env;
use std::io::{self, IsTerminal as _};

use clap::Args;
use dmd_analyze::program::{FoldRules, ProgramOptions};
use regex::Regex;

#[derive(Args, Clone)]
pub(crate) struct ProgramView {
    /// Keep the frames of allocators and libraries, and those that start threads and `main`.
    #[arg(long, conflicts_with_all = ["firefox", "json", "classic", "suggest"])]
    all_frames: bool,
    /// Also fold frames that match this. The text of a frame is `FUNCTION (FILE:LINE)`. Repeatable.
    #[arg(long, value_name = "REGEX", conflicts_with = "form")]
    fold: Vec<Regex>,
    /// Shorten nothing. Names and paths are whole.
    #[arg(long, short, conflicts_with = "form")]
    verbose: bool,
}

/// The same for commands whose only view is that of the author.
#[derive(Args, Clone)]
pub(crate) struct StackView {
    /// Keep the frames of allocators and libraries, and those that start threads and `main`.
    #[arg(long)]
    all_frames: bool,
    /// Also fold frames that match this. The text of a frame is `FUNCTION (FILE:LINE)`. Repeatable.
    #[arg(long, value_name = "REGEX")]
    fold: Vec<Regex>,
    /// Shorten nothing. Names and paths are whole.
    #[arg(long, short)]
    verbose: bool,
}

impl StackView {
    /// The options of a view that goes to a terminal, or does not.
    pub(super) fn options(&self, terminal: bool) -> ProgramOptions {
        let Self { all_frames, fold, verbose } = self.clone();
        ProgramView { all_frames, fold, verbose }.options(terminal)
    }
}

impl ProgramView {
    pub(super) fn shows_all_frames(&self) -> bool {
        self.all_frames
    }

    /// The options of a view that goes to a terminal, or does not.
    pub(super) fn options(self, terminal: bool) -> ProgramOptions {
        let mut options = options(terminal);
        options.folds = self
            .fold
            .into_iter()
            .fold(FoldRules::new(), |folds, rule| folds.also(move |text| rule.is_match(text)));
        options.all_frames = self.all_frames;
        options.verbose = self.verbose;
        options
    }
}

/// The default options. A terminal gets colours unless `$NO_COLOR` forbids them.
pub(super) fn options(terminal: bool) -> ProgramOptions {
    let mut options = ProgramOptions::new();
    options.colour = terminal && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    options
}

/// Whether standard output is a terminal.
pub(super) fn on_terminal() -> bool {
    io::stdout().is_terminal()
}
