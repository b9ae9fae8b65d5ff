//! `assert_no_leaks!`: checks that a part of a program frees all memory that it allocates.
//!
//! Two dumps, before and after, show which stacks have more live blocks than before. Reading the files and looking up
//! symbols allocates blocks, which must not count as leaks, so both happen after the second dump.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use dmd_analyze::Dump;
use dmd_analyze::program::{LeakOptions, Leaks, ProgramOptions};
use dmd_analyze::symbolize::SymbolOptions;

#[cfg(any(engine = "native", engine = "portable"))]
use crate::boundary::entry::{dump, is_running};
#[cfg(not(any(engine = "native", engine = "portable")))]
use crate::unsupported::{dump, is_running};

/// The maximum number of stacks in a message.
const STACKS: usize = 10;

/// Asserts that all memory that a closure allocates is freed after the closure has returned and its result was
/// dropped.
///
/// The program needs DMD: a global allocator that is switched on (see [`Dmd::switched_on`](crate::Dmd::switched_on)),
/// in any mode except cumulative, or `about-memory run`. With [`Stacks::Full`](crate::Stacks::Full) the message names
/// the stack of each leak. By default DMD records stacks only for a sample, and the message counts small blocks
/// without stacks. Blocks that libraries allocate once for a process are not leaks: see
/// [`OneTime`](dmd_analyze::program::OneTime). Blocks of other threads that run at the same time also count as leaks.
/// So such a test must be the only one in its process: as the only test of a file, or under `cargo nextest`.
///
/// ```
/// use dmd::{Dmd, Mode, Options, Stacks};
/// use std::alloc::System;
///
/// #[global_allocator]
/// static ALLOCATOR: Dmd<System> =
///     Dmd::switched_on(System, Options::new().mode(Mode::Live).stacks(Stacks::Full).quiet(true));
///
/// dmd::assert_no_leaks!(|| vec![1, 2, 3].len());
/// let leaks = || dmd::assert_no_leaks!(|| std::mem::forget(vec![1, 2, 3]));
/// assert!(std::panic::catch_unwind(leaks).is_err());
/// ```
///
/// # Panics
///
/// Panics if a stack has more live blocks than before; the message names the stacks. Also panics if DMD does not
/// record, or if a dump cannot be written to the folder for temporary files.
#[macro_export]
macro_rules! assert_no_leaks {
    ($closure:expr $(,)?) => {
        $crate::__check_leaks($closure)
    };
}

/// Implements `assert_no_leaks!`.
#[doc(hidden)]
#[track_caller]
pub fn check<R>(run: impl FnOnce() -> R) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    assert!(
        is_running(),
        "DMD does not record this program: its global allocator must be a `Dmd` that is switched on"
    );
    let name = format!("dmd-leaks-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let [before, after] =
        ["before", "after"].map(|part| std::env::temp_dir().join(format!("{name}-{part}.json.gz")));
    let written = dump(&before);
    drop(run());
    let written = [(&before, written), (&after, dump(&after))];
    let failed = written.into_iter().find_map(|(path, written)| Some((path, written.err()?.to_string())));
    let leaks = match failed {
        None => leaks(&before, &after),
        Some((path, error)) => Err(format!("{}: {error}", path.display())),
    };
    for file in [&before, &after] {
        // The file is temporary, so a failure to remove it does not matter.
        let _ = std::fs::remove_file(file);
    }
    let leaks = leaks.unwrap_or_else(|error| panic!("{error}"));
    assert!(
        leaks.blocks() == 0,
        "the closure leaks memory\n\n{}",
        leaks.text(STACKS, &ProgramOptions::new())
    );
}

fn leaks(before: &Path, after: &Path) -> Result<Leaks, String> {
    let read = |path: &Path| -> Result<Dump, String> {
        let mut dump = dmd_analyze::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        dump.symbolize(&SymbolOptions::new());
        Ok(dump.without_reports())
    };
    Leaks::from_difference(read(before)?, read(after)?, &LeakOptions::new())
        .map_err(|error| error.to_string())
}
