//! Blocks that libraries and the loader allocate once for a process or a thread, and keep until it ends.
//!
//! All rules are data in one table.

use core::fmt;

use crate::dump::CallFrame;
use crate::names::{FoldReason, FoldRules, FoldedStack};

/// A kind of blocks that a library or the loader allocates once and keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum OneTime {
    /// The start of the program or of a thread: the stack has no function of the program.
    Start,
    /// The list of a thread's destructors, and thread-local values of Rust's library.
    ThreadLocals,
    /// The handle of a thread.
    Thread,
    /// Buffers of standard input and output.
    Stdio,
    /// Functions to run at exit.
    AtExit,
    /// The loader: libraries and their thread-local data.
    Loader,
    /// Locales, character sets and time zones.
    Locale,
    /// Names of users, hosts and services.
    Names,
    /// Caches of symbols for backtraces.
    Backtrace,
    /// The memory that C++ reserves for exceptions.
    Exceptions,
}

impl OneTime {
    /// A description in a few words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start of the program and its threads",
            Self::ThreadLocals => "thread-local data of Rust's library",
            Self::Thread => "handles of threads",
            Self::Stdio => "buffers of standard input and output",
            Self::AtExit => "functions to run at exit",
            Self::Loader => "loader",
            Self::Locale => "locales and time zones of the C library",
            Self::Names => "users, hosts and services of the C library",
            Self::Backtrace => "symbols for backtraces",
            Self::Exceptions => "reserve of C++ for exceptions",
        }
    }
}

impl fmt::Display for OneTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The condition by which a rule recognizes its frames.
enum OneTimePattern {
    /// The function's name starts with this text, after characters such as `<` and `&`.
    Prefix(&'static [&'static str]),
    /// The function has this name, with or without `@` and a version's name, and its source file is not Rust's.
    Symbol(&'static [&'static str]),
    /// The name of the module's file starts with this text.
    Module(&'static [&'static str]),
}

/// The first rule that matches a frame counts. Only the frames inside of the program's innermost function are tested.
/// If the stack has no function of the program, all frames are tested.
const RULES: &[(OneTime, OneTimePattern)] = &[
    (
        OneTime::AtExit,
        OneTimePattern::Symbol(&[
            "__new_exitfn",
            "__internal_atexit",
            "__cxa_atexit",
            "__cxa_at_quick_exit",
            "atexit",
            "on_exit",
        ]),
    ),
    (OneTime::ThreadLocals, OneTimePattern::Symbol(&["__cxa_thread_atexit_impl", "__cxa_thread_atexit"])),
    (
        OneTime::ThreadLocals,
        OneTimePattern::Prefix(&[
            "std::sys::thread_local::",
            "std::sys::sync::thread_parking::",
            "std::sync::mpmc::context::",
            "std::thread::spawnhook::",
        ]),
    ),
    (
        OneTime::Thread,
        OneTimePattern::Prefix(&[
            "std::thread::current",
            "std::thread::Thread::new",
            "std::thread::thread::Thread::new",
            "std::thread::main_thread",
        ]),
    ),
    (OneTime::Stdio, OneTimePattern::Prefix(&["std::io::stdio::"])),
    (
        OneTime::Stdio,
        OneTimePattern::Symbol(&["_IO_file_doallocate", "_IO_wfile_doallocate", "_IO_doallocbuf"]),
    ),
    (
        OneTime::Backtrace,
        OneTimePattern::Prefix(&[
            "std::backtrace::",
            "std::backtrace_rs::",
            "std::sys::backtrace::",
            "backtrace::symbolize::",
        ]),
    ),
    (
        OneTime::Loader,
        OneTimePattern::Symbol(&[
            "_dl_allocate_tls",
            "_dl_allocate_tls_storage",
            "allocate_dtv",
            "_dl_resize_dtv",
            "tls_get_addr_tail",
            "__tls_get_addr",
            "_dl_open",
            "dl_open_worker",
            "_dl_map_object",
            "_dl_map_object_from_fd",
            "_dl_map_object_deps",
            "_dl_new_object",
            "_dl_check_map_versions",
            "_dlerror_run",
            "dlerror",
        ]),
    ),
    (OneTime::Loader, OneTimePattern::Module(&["ld-linux", "ld-musl", "ld.so"])),
    (
        OneTime::Locale,
        OneTimePattern::Symbol(&[
            "setlocale",
            "newlocale",
            "_nl_find_locale",
            "_nl_load_locale",
            "_nl_load_locale_from_archive",
            "_nl_intern_locale_data",
            "_nl_make_l10nflist",
            "_nl_find_domain",
            "__dcigettext",
            "bindtextdomain",
            "textdomain",
            "set_binding_values",
            "tzset_internal",
            "tzset",
            "__tzfile_read",
            "__tz_convert",
            "__gconv_open",
            "__gconv_load_cache",
            "__wcsmbs_load_conv",
        ]),
    ),
    (
        OneTime::Names,
        OneTimePattern::Symbol(&[
            "__nss_database_get",
            "nss_database_check_reload_and_get",
            "__nss_module_load",
            "__nss_module_get_function",
            "nss_action_parse",
            "__nss_lookup_function",
            "nss_parse_service_list",
            "__res_vinit",
            "__resolv_conf_load",
            "__resolv_conf_allocate",
            "__resolv_conf_attach",
        ]),
    ),
    (
        OneTime::Exceptions,
        OneTimePattern::Prefix(&[
            "(anonymous namespace)::pool::pool",
            "__gnu_cxx::__freeres",
            "_GLOBAL__sub_I_eh_alloc",
        ]),
    ),
];

impl OneTime {
    /// The kind of a stack's blocks; `None` if they are the program's. The frames are innermost first.
    pub(crate) fn find(frames: &[CallFrame<'_>]) -> Option<Self> {
        let folds = FoldRules::new();
        let sited = FoldedStack::fold(frames, &folds);
        let site = sited.site()?;
        // If no frame belongs to the program, the site is a library function. A site in a runtime counts as the
        // program's, because a runtime allocates for tasks.
        let has_program = matches!(
            folds.reason(&frames[site]),
            None | Some(FoldReason::Arena | FoldReason::Runtime | FoldReason::Executor)
        );
        let inner = if has_program { &frames[..site] } else { frames };
        let rule = RULES.iter().find(|(_, by)| inner.iter().any(|frame| fits(frame, by)));
        // A frame without a function and a module may belong to the program.
        let is_named = frames.iter().all(|frame| frame.function.is_some() || frame.module.is_some());
        rule.map(|(kind, _)| *kind).or((!has_program && is_named).then_some(Self::Start))
    }
}

fn fits(frame: &CallFrame<'_>, by: &OneTimePattern) -> bool {
    let function = frame.function.unwrap_or_default();
    match by {
        OneTimePattern::Prefix(starts) => {
            let owner = function.trim_start_matches(['<', '&', '[', '*']);
            starts.iter().any(|start| owner.starts_with(start))
        }
        OneTimePattern::Symbol(names) => {
            let name = function.split('@').next().unwrap_or_default();
            !frame.file.is_some_and(|file| file.ends_with(".rs")) && names.contains(&name)
        }
        OneTimePattern::Module(starts) => {
            let file = frame.module.map(|module| module.rsplit('/').next().unwrap_or(module));
            file.is_some_and(|file| starts.iter().any(|start| file.starts_with(start)))
        }
    }
}
