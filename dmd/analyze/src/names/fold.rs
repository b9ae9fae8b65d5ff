//! Frames that say nothing about the program: frames of allocators, arenas and runtimes, frames of Rust's and C's
//! libraries, and frames through which a thread or `main` starts.
//!
//! All rules are data in one table. [`FoldRules::also`] adds a user's rule.

mod site;
mod stacks;

use core::fmt;
use std::borrow::Cow;

use super::container::segments;
use super::source_path::{library, package};
use crate::dump::CallFrame;

pub(crate) use site::FoldedStack;

/// The reason why a view folds a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FoldReason {
    /// A function of an allocator, or of the engine that recorded the stack.
    Allocator,
    /// A function of a collection. It allocates for its caller.
    Collection,
    /// Another function of Rust's or C's library. It allocates for its caller.
    Library,
    /// A function that hands out parts of chunks. It allocates for its caller.
    Arena,
    /// A function of a runtime for async tasks or for parallel jobs, or of a server on such a runtime. It allocates for
    /// its caller, unless an [`Executor`](Self::Executor) called it.
    Runtime,
    /// A function of a runtime that polls a task or runs a job. The functions around it are not the callers of the task.
    Executor,
    /// A function through which a thread or the program starts.
    Start,
    /// A function that a rule of the user matches.
    User,
}

/// The condition by which a rule recognizes its frames.
enum FoldPattern {
    /// The function has this name.
    Name(&'static [&'static str]),
    /// The function has this name, and its source file is unknown.
    Symbol(&'static [&'static str]),
    /// The function's name starts with this text, after characters such as `<` and `&`, and after `mut `.
    Prefix(&'static [&'static str]),
    /// The function's name starts with this text, whatever the source file is: no other crate has the name.
    Crates(&'static [&'static str]),
    /// The last part of the function's path is this name, whatever the source file is: the compiler generates the
    /// function.
    Generated(&'static [&'static str]),
    /// The source file belongs to this crate of Rust's library or of another package.
    Crate(&'static [&'static str]),
    /// The source file belongs to one of these packages. If the file is unknown, the function's crate has the name of
    /// one of these packages.
    Package(&'static [&'static str]),
    /// Like [`Package`](Self::Package), and the function's own name starts with a word of [`EXECUTORS`].
    PackageExecutor(&'static [&'static str]),
    /// The source file belongs to a package in whose name a word starts with this text.
    PackageWord(&'static [&'static str]),
    /// The name of the module's file starts with this text.
    Module(&'static [&'static str]),
    /// The path of the source file inside of `std` starts with this text.
    StdFile(&'static [&'static str]),
    /// The path of the source file starts with this text, and the file is not Rust's.
    File(&'static [&'static str]),
    /// The source file is not Rust's, and the function has this name, with at most one word before the name.
    InC(&'static [&'static str]),
}

/// Packages whose functions hand out parts of chunks. Packages with `arena` or `bump` in their name are not listed
/// here.
const ARENAS: &[&str] = &["oxc_allocator", "blink-alloc", "toolshed"];

/// Packages that run tasks or jobs for their callers, and servers whose handlers are such tasks.
const RUNTIMES: &[&str] = &[
    "tokio",
    "tokio-util",
    "tokio-stream",
    "hyper",
    "hyper-util",
    "h2",
    "tower",
    "tower-http",
    "axum",
    "axum-core",
    "futures-core",
    "futures-executor",
    "futures-lite",
    "futures-util",
    "async-executor",
    "async-global-executor",
    "async-io",
    "async-std",
    "async-task",
    "blocking",
    "smol",
    "actix-rt",
    "rayon",
    "rayon-core",
];

/// Words at the start of function names. A function with such a name polls tasks or runs jobs.
const EXECUTORS: &[&str] =
    &["poll", "block_on", "run", "execute", "main_loop", "wait_until", "thread_main", "tick"];

/// The first rule that matches a frame counts. [`Name`](FoldPattern::Name) and [`Prefix`](FoldPattern::Prefix) match
/// only if the source file is unknown or is not Rust's: the file of a Rust function is better evidence than its name.
const RULES: &[(FoldReason, FoldPattern)] = &[
    (
        FoldReason::Start,
        FoldPattern::Name(&[
            "_start",
            "__libc_start_main",
            "__libc_start_main_impl",
            "__libc_start_main@@GLIBC_2.34",
            "__libc_start_call_main",
            "start_thread",
            "clone",
            "clone3",
            "__clone",
            "__clone3",
            "__pthread_start",
            "thread_start",
        ]),
    ),
    // The C `main` that calls Rust's `main`. A C program's own `main` has a source file, so this rule does not match
    // it.
    (FoldReason::Start, FoldPattern::Symbol(&["main"])),
    (
        FoldReason::Allocator,
        FoldPattern::Name(&[
            "malloc",
            "calloc",
            "realloc",
            "reallocarray",
            "free",
            "cfree",
            "memalign",
            "aligned_alloc",
            "posix_memalign",
            "valloc",
            "pvalloc",
            "alloc",
            "alloc_zeroed",
            "mallocx",
            "rallocx",
            "sdallocx",
        ]),
    ),
    (
        FoldReason::Allocator,
        FoldPattern::Prefix(&[
            "__rust_alloc",
            "__rust_realloc",
            "__rustc",
            "__rdl_",
            "__rg_",
            "operator new(",
            "operator new[](",
            "_rjem_",
            "je_",
            "prof_backtrace",
            "prof_alloc_prep",
            "imalloc",
            "irallocx",
            "do_rallocx",
            "mi_",
            "_mi_",
            "tcmalloc::",
            "mimalloc::",
            "tikv_jemallocator::",
            "jemallocator::",
        ]),
    ),
    // Functions with these names in C are wrappers of an allocator, as in Firefox.
    (
        FoldReason::Allocator,
        FoldPattern::InC(&["malloc", "calloc", "realloc", "memalign", "posix_memalign", "g_slice_alloc"]),
    ),
    (FoldReason::Allocator, FoldPattern::Crates(&["dmd::", "dmd_unwind::", "memory_reporter::allocator"])),
    // `#[global_allocator]` generates these functions at the line of the static.
    (
        FoldReason::Allocator,
        FoldPattern::Generated(&["__rust_alloc", "__rust_alloc_zeroed", "__rust_realloc", "__rust_dealloc"]),
    ),
    (
        FoldReason::Allocator,
        FoldPattern::Crate(&[
            "memory-dmd",
            "mimalloc",
            "tikv-jemallocator",
            "jemallocator",
            "libmimalloc-sys",
            "tikv-jemalloc-sys",
        ]),
    ),
    (
        FoldReason::Allocator,
        FoldPattern::Module(&["libdmd.so", "libjemalloc.so", "libmimalloc.so", "libtcmalloc"]),
    ),
    (
        FoldReason::Collection,
        FoldPattern::Crate(&[
            "alloc",
            "core",
            "hashbrown",
            "indexmap",
            "smallvec",
            "thin-vec",
            "tinyvec",
            "allocator-api2",
        ]),
    ),
    (
        FoldReason::Collection,
        FoldPattern::Prefix(&[
            "alloc::",
            "core::",
            "std::collections::",
            "hashbrown::",
            "indexmap::",
            "smallvec::",
            "thin_vec::",
            "tinyvec::",
            "allocator_api2::",
        ]),
    ),
    (FoldReason::Collection, FoldPattern::StdFile(&["collections/", "alloc.rs"])),
    (FoldReason::Arena, FoldPattern::Package(ARENAS)),
    (FoldReason::Arena, FoldPattern::PackageWord(&["arena", "bump"])),
    (FoldReason::Executor, FoldPattern::PackageExecutor(RUNTIMES)),
    (FoldReason::Runtime, FoldPattern::Package(RUNTIMES)),
    (FoldReason::Library, FoldPattern::Crate(&["std", "proc_macro", "test", "panic_unwind", "std_detect"])),
    (FoldReason::Library, FoldPattern::Prefix(&["std::"])),
    // The function to which `catch_unwind` compiles.
    (FoldReason::Library, FoldPattern::Symbol(&["__rust_try"])),
    (
        FoldReason::Library,
        FoldPattern::Module(&[
            "libc.so",
            "libc-",
            "ld-linux",
            "ld-musl",
            "libpthread",
            "libstdc++",
            "libgcc_s",
            "linux-vdso",
        ]),
    ),
    // The debug information of system libraries has relative paths.
    (FoldReason::Library, FoldPattern::File(&["./", "../"])),
];

type UserRule = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// Decides which frames a view folds: by the built-in rules, and by the user's rules.
#[derive(Default)]
pub struct FoldRules {
    rules: Vec<UserRule>,
}

impl fmt::Debug for FoldRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Folds").field("rules", &self.rules.len()).finish()
    }
}

impl FoldRules {
    /// The built-in rules. [`also`](Self::also) adds a user's rule.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule: the view also folds a frame if `rule` returns true for its text, such as
    /// `app::f (/home/me/app/src/f.rs:7)`.
    #[must_use]
    pub fn also(mut self, rule: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.rules.push(Box::new(rule));
        self
    }

    /// The reason why a view folds this frame; `None` if the view shows it.
    pub fn reason(&self, frame: &CallFrame<'_>) -> Option<FoldReason> {
        let by_table = by_table(frame);
        if by_table.is_some() || self.rules.is_empty() {
            return by_table;
        }
        let text = frame.to_string();
        self.rules.iter().any(|rule| rule(&text)).then_some(FoldReason::User)
    }
}

/// The crate of a function that hands out parts of chunks.
pub(crate) fn arena_of<'t>(frame: &CallFrame<'t>) -> Option<Cow<'t, str>> {
    (by_table(frame) == Some(FoldReason::Arena)).then(|| frame.crate_name())
}

fn by_table(frame: &CallFrame<'_>) -> Option<FoldReason> {
    if frame.in_allocator {
        return Some(FoldReason::Allocator);
    }
    let function = frame.function.unwrap_or_default();
    let owner = function.trim_start_matches(['<', '&', '[', '(', '*']);
    let owner = owner.strip_prefix("mut ").unwrap_or(owner);
    let of_crate = frame.file.and_then(|file| library(file).or_else(|| package(file))).map(|(name, _)| name);
    // A file name without a folder does not show whose file it is.
    let is_rust = frame.file.is_some_and(|file| file.ends_with(".rs") && file.contains('/'));
    let module = frame.module.map(|module| module.rsplit('/').next().unwrap_or(module));
    let by_name = owner.split_once("::").map(|(first, _)| first).filter(|_| !is_rust);
    let is_of = |package: &str| match (of_crate, by_name) {
        (Some(name), _) => name == package,
        (None, Some(name)) => name.len() == package.len() && name.split('_').eq(package.split(['-', '_'])),
        (None, None) => false,
    };
    let fits = |by: &FoldPattern| match by {
        FoldPattern::Name(names) => !is_rust && names.contains(&function),
        FoldPattern::Symbol(names) => frame.file.is_none() && names.contains(&function),
        FoldPattern::Prefix(starts) => !is_rust && starts.iter().any(|start| owner.starts_with(start)),
        FoldPattern::Crates(starts) => starts.iter().any(|start| owner.starts_with(start)),
        FoldPattern::Generated(names) => {
            function.rsplit("::").next().is_some_and(|last| names.contains(&last))
        }
        FoldPattern::Crate(names) => of_crate.is_some_and(|name| names.contains(&name)),
        FoldPattern::Package(names) => names.iter().any(|name| is_of(name)),
        FoldPattern::PackageExecutor(names) => {
            let last = segments(function).into_iter().rfind(|part| !part.starts_with(['{', '<']));
            let executes = last.is_some_and(|last| EXECUTORS.iter().any(|start| last.starts_with(start)));
            executes && names.iter().any(|name| is_of(name))
        }
        FoldPattern::PackageWord(words) => of_crate
            .unwrap_or_default()
            .split(['-', '_'])
            .any(|part| words.iter().any(|word| part.starts_with(word))),
        FoldPattern::Module(starts) => {
            // The source files of system libraries are known only if their debug information is installed.
            module.is_some_and(|module| starts.iter().any(|start| module.starts_with(start)))
        }
        FoldPattern::StdFile(starts) => frame.file.and_then(library).is_some_and(|(name, below)| {
            name == "std" && starts.iter().any(|start| below.starts_with(start))
        }),
        FoldPattern::InC(parts) => {
            let is_c = frame.file.is_some_and(|file| !file.ends_with(".rs"));
            let is = |name: &str| {
                let before = function.strip_suffix(name);
                before.is_some_and(|before| before.matches(['_', ':']).count() <= 1)
            };
            is_c && parts.iter().any(|part| is(part))
        }
        FoldPattern::File(starts) => {
            let file = frame.file.filter(|_| !is_rust);
            file.is_some_and(|file| starts.iter().any(|start| file.starts_with(start)))
        }
    };
    RULES.iter().find(|(_, by)| fits(by)).map(|(fold, _)| *fold)
}
