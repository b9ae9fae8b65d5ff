//! DMD, the dark matter detector: which stacks allocated what no memory reporter reports.
//!
//! A program wraps its global allocator, or is started under `libdmd.so`, and `$DMD` switches recording on;
//! [`report_and_dump`] runs the memory reporters and writes which blocks they reported, and with which
//! stacks all blocks were allocated.
//!
//! ```
//! use dmd::{Dmd, Mode, Options};
//! use std::alloc::System;
//!
//! // `Dmd::new(System)` in a program: there `$DMD` decides.
//! #[global_allocator]
//! static ALLOCATOR: Dmd<System> = Dmd::switched_on(System, Options::new().mode(Mode::Live).quiet(true));
//!
//! let path = std::env::temp_dir().join(format!("doc-{}.json", std::process::id()));
//! dmd::dump(&path)?;
//! assert!(std::fs::read_to_string(&path).unwrap().contains("\"mode\": \"live\""));
//! # std::fs::remove_file(&path).unwrap();
//! # Ok::<(), dmd::DumpError>(())
//! ```
//!
//! # How it hangs together
//!
//! A hook ([`Dmd`], or the functions of `libdmd.so`) calls the engine through a table of C functions, so
//! that both may be there and one records. The engine keeps live blocks in a table indexed by address and
//! stacks in a tree of calls, both outside of the measured heap. A reporter's measuring marks blocks. A dump
//! merges and writes them; symbols are looked up later, from the file.
//!
//! # What it does not do
//!
//! Record on other systems than Linux on `x86_64` and `aarch64`: there [`Dmd`] only forwards. Dumps are read
//! everywhere.
//!
//! See memory that is not `malloc`'s or the wrapped allocator's: mappings, stacks, static data.

#![deny(unsafe_code)]

#[cfg(feature = "analyze")]
pub mod analyze;
mod error;
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "what starts others needs a part of it"))]
mod first_process;
#[allow(unsafe_code, reason = "an allocator")]
mod global_alloc;
mod options;
mod sampler;
#[cfg(feature = "analyze")]
pub mod symbolize;

cfg_if::cfg_if! {
    if #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))] {
        #[allow(unsafe_code, reason = "gives functions to C")]
        mod bridge;
        #[allow(unsafe_code, reason = "system calls")]
        mod comment;
        #[allow(unsafe_code, reason = "a system call")]
        mod confined;
        mod dark_matter;
        mod dead_blocks;
        #[allow(unsafe_code, reason = "calls and is called through a table of C functions")]
        mod door;
        mod dump;
        mod dump_sizes;
        #[allow(unsafe_code, reason = "one cell behind a protocol")]
        mod engine;
        #[allow(unsafe_code, reason = "functions for C")]
        mod entry;
        #[allow(unsafe_code, reason = "registers handlers")]
        mod fork;
        #[allow(unsafe_code, reason = "an allocator")]
        mod internal_alloc;
        #[allow(unsafe_code, reason = "a lock")]
        mod lock;
        mod mark;
        #[allow(unsafe_code, reason = "maps memory")]
        mod memory;
        #[allow(unsafe_code, reason = "asks the loader")]
        mod modules;
        #[allow(unsafe_code, reason = "goes to another stack and back")]
        mod own_stack;
        #[allow(unsafe_code, reason = "an allocator of pages")]
        mod pages;
        #[allow(unsafe_code, reason = "changes the environment before main")]
        mod process;
        #[allow(unsafe_code, reason = "tables of other programs")]
        mod programs;
        mod runs;
        #[allow(unsafe_code, reason = "ends the process")]
        mod self_test;
        #[allow(unsafe_code, reason = "masks signals")]
        mod signals;
        mod sites;
        mod stack;
        #[allow(unsafe_code, reason = "runs before and after main")]
        mod start;
        #[allow(unsafe_code, reason = "memory indexed by address")]
        mod table;
        #[allow(unsafe_code, reason = "thread-locals without the language's")]
        mod thread;
        #[allow(unsafe_code, reason = "a table read without a lock")]
        mod trace_tree;
        #[allow(unsafe_code, reason = "reads registers, the stack and the loader's tables")]
        #[doc(hidden)]
        pub mod unwind;

        pub use entry::{clear_reports, dump, is_running, report, report_and_dump, report_on_alloc};

        /// What `libdmd.so` is made of. Not for direct use, and without any promise.
        #[doc(hidden)]
        pub mod __private {
            pub use crate::bridge::connect_program;
            pub use crate::comment::say_text as say;
            pub use crate::confined::note as confined;
            pub use crate::door::{Door, local as local_door};
            pub use crate::engine::Taken;
            pub use crate::entry::reset;
            pub use crate::internal_alloc::Internal;
            pub use memory_reporter::bridge::{Engine, Program};

            pub use crate::self_test::{Allocator, run as run_self_test};
            pub use crate::start::{
                Recording, end, forget, passes_by, put_back, record, recording, start_preloaded, take,
            };
        }
    } else {
        mod elsewhere;

        use elsewhere::{door, internal_alloc};

        pub use elsewhere::{clear_reports, dump, is_running, report, report_and_dump, report_on_alloc};
    }
}

pub use error::DumpError;
#[doc(hidden)]
pub use first_process::words_for_first_process;
pub use global_alloc::Dmd;
pub use options::{BadEntry, Mode, Options, Run, Stacks};
pub use sampler::Sampler;
