//! Options of views for the author of a Rust program.

use std::env;
use std::io::{self, IsTerminal as _};

use clap::Args;
use dmd_analyze::program::{FoldRules, ProgramOptions};
use regex::Regex;

#[derive(Args, Clone)]
pub(crate) struct ProgramView {
    /// Keep the frames of allocators and libraries, and the frames that start threads and `main`.
    #[arg(long, conflicts_with_all = ["firefox", "json", "classic", "suggest"])]
    all_frames: bool,
    /// Also fold frames that match this regular expression. The text of a frame is `FUNCTION (FILE:LINE)`. Repeatable.
    #[arg(long, value_name = "REGEX", conflicts_with = "form")]
    fold: Vec<Regex>,
    /// Show everything in full. Names and paths are whole.
    #[arg(long, short, conflicts_with = "form")]
    verbose: bool,
}

/// The same options, for commands that have only the view for the author of a program.
#[derive(Args, Clone)]
pub(crate) struct StackView {
    /// Keep the frames of allocators and libraries, and the frames that start threads and `main`.
    #[arg(long)]
    all_frames: bool,
    /// Also fold frames that match this regular expression. The text of a frame is `FUNCTION (FILE:LINE)`. Repeatable.
    #[arg(long, value_name = "REGEX")]
    fold: Vec<Regex>,
    /// Show everything in full. Names and paths are whole.
    #[arg(long, short)]
    verbose: bool,
}

impl StackView {
    /// Returns the options of the view. `terminal` is true if the output goes to a terminal.
    pub(super) fn options(&self, terminal: bool) -> ProgramOptions {
        let Self { all_frames, fold, verbose } = self.clone();
        ProgramView { all_frames, fold, verbose }.options(terminal)
    }
}

impl ProgramView {
    pub(super) fn shows_all_frames(&self) -> bool {
        self.all_frames
    }

    /// Returns the options of the view. `terminal` is true if the output goes to a terminal.
    pub(super) fn options(self, terminal: bool) -> ProgramOptions {
        let folds = self
            .fold
            .into_iter()
            .fold(FoldRules::new(), |folds, rule| folds.also(move |text| rule.is_match(text)));
        options(terminal).folds(folds).all_frames(self.all_frames).verbose(self.verbose)
    }
}

/// Returns the default options. A terminal gets colours unless `$NO_COLOR` forbids them.
pub(super) fn options(terminal: bool) -> ProgramOptions {
    let colour = terminal && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    ProgramOptions::new().colour(colour)
}

/// Whether standard output is a terminal.
pub(super) fn on_terminal() -> bool {
    io::stdout().is_terminal()
}
