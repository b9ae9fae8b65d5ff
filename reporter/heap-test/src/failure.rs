//! The message of a failed assertion, and its file in the target folder.

use core::fmt::Write as _;
use std::env;
use std::fs;
use std::io::{self, Write as _};
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use memory_report::new_file::{NewFile, Readers};
use memory_reporter::scopes::{HeapFigures, Scope, ScopeStack};
use memory_reporter::watching::SiteFrame;

use crate::figure::{HeapFigure, grouped};

/// The maximum numbers of stacks in a message, and of frames of each.
const STACKS: usize = 10;
const FRAMES: usize = 8;

/// A figure that is not as expected.
pub(crate) struct FailedFigure {
    pub(crate) figure: HeapFigure,
    /// The comparison and the limit.
    pub(crate) expected: String,
    pub(crate) amount: i128,
    /// The difference from the limit, in parentheses.
    pub(crate) difference: String,
}

/// The failed figures of a scope.
pub(crate) struct HeapFailure<'a> {
    pub(crate) scope: &'a Scope,
    pub(crate) figures: &'a HeapFigures,
    pub(crate) failed: Vec<FailedFigure>,
}

impl HeapFailure<'_> {
    #[track_caller]
    pub(crate) fn panic(&self) -> ! {
        panic_with(&[self], "")
    }

    fn head(&self) -> String {
        let mut text = format!("the heap of `{}` is not as expected\n", self.scope.name());
        for failed in &self.failed {
            let amount = failed.figure.text(failed.amount);
            let (name, expected) = (failed.figure.name(), &failed.expected);
            // Writing to a string does not fail.
            let _ = writeln!(text, "  {name}: expected {expected}, got {amount}{}", failed.difference);
        }
        let all = HeapFigure::ALL
            .map(|figure| format!("{} {}", figure.name(), grouped(figure.amount(self.figures))));
        let _ = writeln!(text, "  all figures: {}", all.join(", "));
        text
    }

    fn stacks(&self, stacks: usize, frames: usize) -> String {
        let is_live = self.failed.iter().all(|failed| failed.figure.is_of_live_blocks());
        let (title, found) = if is_live {
            ("live blocks of the scope, now", self.scope.retained_stacks())
        } else {
            ("allocations of the scope", self.scope.allocation_stacks())
        };
        let Some(mut found) = found else {
            return "no stacks: DMD did not record. Declare `memory_reporter::global_allocator!(dmd::Dmd<System>: \
                    dmd::Dmd::new(System));` and run the test with DMD=--stacks=full\n"
                .to_owned();
        };
        if self.failed.iter().any(|failed| !failed.figure.is_bytes()) {
            found.sort_by_key(|stack| core::cmp::Reverse(stack.blocks));
        }
        let mut text = format!("{title}, by stack:\n");
        for stack in found.iter().take(stacks) {
            write_stack(&mut text, stack, frames);
        }
        if found.len() > stacks {
            let _ = writeln!(text, "  and {} more stacks", found.len() - stacks);
        }
        if found.is_empty() {
            text.push_str("  none\n");
        }
        text
    }
}

fn write_stack(text: &mut String, stack: &ScopeStack, frames: usize) {
    let blocks = if stack.blocks == 1 { "block" } else { "blocks" };
    let _ =
        writeln!(text, "  {} {blocks}, {} bytes", grouped(stack.blocks.into()), grouped(stack.bytes.into()));
    let shown = shown_frames(&stack.frames);
    for frame in shown.iter().take(frames) {
        let function = frame.function.as_deref().unwrap_or("???");
        let _ = match frame.line {
            0 => writeln!(text, "    {function} ({})", frame.source),
            line => writeln!(text, "    {function} ({}:{line})", frame.source),
        };
    }
    if stack.frames.is_empty() {
        text.push_str("    no stack: run with DMD=--stacks=full to record the stack of each block\n");
    }
}

/// The frames of the code in the scope, without the allocator's and the scope's own frames.
fn shown_frames(frames: &[SiteFrame]) -> Vec<&SiteFrame> {
    let function = |frame: &SiteFrame| frame.function.clone().unwrap_or_default();
    let end =
        frames.iter().position(|frame| function(frame).starts_with("memory_reporter::reporting::scopes"));
    let inside = &frames[..end.unwrap_or(frames.len())];
    let is_own = |frame: &SiteFrame| {
        let function = function(frame);
        frame.is_system
            || ["memory_reporter::", "dmd::", "__rustc::", "__rust_"]
                .iter()
                .any(|own| function.starts_with(own))
    };
    let shown: Vec<&SiteFrame> = inside.iter().filter(|frame| !is_own(frame)).collect();
    if shown.is_empty() { inside.iter().collect() } else { shown }
}

/// Panics with the text of all failures. Writes the text with all stacks to a file in the target folder.
#[track_caller]
pub(crate) fn panic_with(failures: &[&HeapFailure<'_>], end: &str) -> ! {
    let text = |stacks, frames| {
        let texts = failures.iter().map(|failure| failure.head() + &failure.stacks(stacks, frames));
        texts.collect::<Vec<_>>().join("\n") + end
    };
    let whole = text(usize::MAX, usize::MAX);
    let file = match write(&whole, Location::caller()) {
        Ok(path) => format!("the whole text is in {}", path.display()),
        Err(error) => format!("the whole text could not be written: {error}"),
    };
    panic!("{}{file}", text(STACKS, FRAMES));
}

fn write(text: &str, place: &Location<'_>) -> io::Result<PathBuf> {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let program = env::current_exe()?;
    let name = program.file_stem().unwrap_or_default().to_string_lossy();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("{name}-{}-{number}.txt", std::process::id());
    let (path, readers) = match target_folder(&program) {
        Some(target) => {
            let folder = target.join("heap-tests");
            fs::create_dir_all(&folder)?;
            (folder.join(name), Readers::Umask)
        }
        // Other users can write in this folder, so a folder in it may be theirs.
        None => (env::temp_dir().join(format!("heap-test-{name}")), Readers::User),
    };
    let mut file = NewFile::create(&path, readers)?;
    writeln!(file.file(), "{}:{}\n{text}", place.file(), place.line())?;
    file.finish()?;
    Ok(path)
}

/// The target folder that contains this program. Cargo marks each target folder that it makes itself. If another program
/// made the folder, it has no mark, but cargo puts tests into `PROFILE/deps` below it.
fn target_folder(program: &Path) -> Option<&Path> {
    let marked = program.ancestors().skip(1).find(|folder| folder.join("CACHEDIR.TAG").exists());
    marked.or_else(|| program.parent().filter(|folder| folder.ends_with("deps"))?.ancestors().nth(2))
}
