//! DMD, the dark matter detector: it finds the stacks that allocated memory which no memory reporter reports.
//!
//! A program wraps its global allocator, or runs under `libdmd.so`, and `$DMD` switches recording on.
//! [`report_and_dump`] runs the memory reporters. Then it writes which blocks they reported, and the stack of each
//! block.
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
//! # Structure
//!
//! A hook ([`Dmd`], or a function of `libdmd.so`) calls the engine through a table of C functions, so that one engine
//! records even if a process has both hooks. The engine keeps live blocks in a table indexed by address, and stacks in
//! a tree of calls. Both are outside of the measured heap. A reporter that measures values marks their blocks. A dump
//! merges blocks and writes them; `analyze` looks up symbols later, from the file.
//!
//! Each layer uses only the layers above it:
//!
//! ```text
//! system    memory, locks, the thread's slot, forks, names of the process's files
//! tables    live blocks, the tree of calls, marks
//! engine    one for each process: records for the hooks
//! dump      the file
//! recording the file of all events
//! boundary  hooks, entry points, the reporters of programs
//! ```
//!
//! # Limits
//!
//! On Linux on `x86_64` and `aarch64`, the engine walks stacks by itself. On other 64-bit platforms with Linux, macOS
//! or Windows, a portable engine with the same tables takes stacks with the crate `backtrace`. It is slower. On all
//! other platforms [`Dmd`] only forwards calls. Programs can read dumps on every platform.
//!
//! DMD records the blocks of `malloc` and of the wrapped allocator. On Linux, a dump also contains the other memory of
//! the process by owner: mappings, stacks, static data. `libdmd.so` knows which function made a mapping.

#![deny(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    engine = "portable",
    allow(dead_code, unreachable_pub, reason = "only `libdmd.so` uses it, with the native engine")
)]

mod byte_sampler;
mod error;
#[allow(unsafe_code, reason = "an allocator")]
mod global_alloc;
#[cfg_attr(not(engine = "native"), allow(dead_code, reason = "no wrapper records"))]
#[cfg(feature = "analyze")]
mod leaks;
mod logarithm;
mod options;
mod sampler;

#[cfg(feature = "analyze")]
pub use dmd_analyze::{self as analyze, assert_coverage, symbolize};

cfg_if::cfg_if! {
    if #[cfg(any(engine = "native", engine = "portable"))] {
        mod boundary;
        mod dump;
        #[allow(unsafe_code, reason = "a cell that only the start of the engine writes")]
        mod engine;
        #[cfg_attr(not(target_os = "linux"), path = "recording/none.rs")]
        mod recording;
        mod system;
        mod tables;

        use boundary::recorder;
        use system::internal_alloc;

        #[cfg(engine = "native")]
        #[doc(hidden)]
        pub use dmd_unwind as unwind;
        pub use boundary::previous_dump::{PreviousDump, previous_dump};
        pub use boundary::entry::{clear_reports, dump, is_running, report, report_and_dump, report_on_alloc};

        /// For tests. Not for direct use, and without any guarantee of stability.
        #[cfg(engine = "portable")]
        #[doc(hidden)]
        pub mod __private {
            pub use crate::boundary::entry::reset;
        }

        /// The parts of `libdmd.so`. Not for direct use, and without any guarantee of stability.
        #[cfg(engine = "native")]
        #[doc(hidden)]
        pub mod __private {
            pub use memory_reporter::engine_abi::EngineTable;

            pub use crate::boundary::attach::{AttachOptions, AttachRefusal, after_a_moment, attach, detach, is_recorded, on_engine_thread};
            pub use crate::boundary::dumping::program_is_replaced;
            pub use crate::boundary::ending::HiddenHandler;
            pub use crate::boundary::engine_abi::table as engine_table;
            pub use crate::boundary::entry::reset;
            pub use crate::boundary::mapping_hooks::{ForgottenMapping, record_mapping};
            pub use crate::boundary::self_test::{Allocator, run as run_self_test};
            pub use crate::boundary::preload::{
                PreloadRecording, begin_move, commit_move, forget, has_no_record, listen_if_asked, may_record,
                add_linked_allocator, own_allocations, passes_by, passes_over, prepare_engine_threads, record, recording, roll_back_move,
                allocation_failed, start_preloaded, start_threads, within_allocator,
            };
            pub use crate::engine::{BlockMove, SizeOf};
            pub use dmd_format::LINKED_MARK;
            pub use crate::system::confined::{is_confined, note as confined};
            pub use crate::system::copy::ProcessCopies;
            pub use crate::system::errno::keeping_errno;
            pub use crate::system::engine_threads::{
                Destructor, at_end as at_engine_thread_end, count as engine_threads, is_engine_thread, without as without_engine_threads,
            };
            pub use crate::system::internal_alloc::InternalAllocator;
            pub use crate::system::log::say_text as say;
            pub use crate::tables::linked_allocators::LinkedAllocator;
            pub use crate::tables::older_blocks::OLDER_BLOCKS;
            pub use crate::tables::stack::system_call_at;
        }
    } else {
        mod unsupported;

        use unsupported::{internal_alloc, recorder};

        pub use unsupported::{clear_reports, dump, is_running, report, report_and_dump, report_on_alloc};
    }
}

pub use byte_sampler::ByteSampler;
pub use error::DumpError;
pub use global_alloc::Dmd;
#[cfg(feature = "analyze")]
#[doc(hidden)]
pub use leaks::check as __check_leaks;

/// Needs the feature `analyze`.
#[cfg(not(feature = "analyze"))]
#[macro_export]
macro_rules! assert_no_leaks {
    ($($closure:tt)*) => {
        ::core::compile_error!("`assert_no_leaks!` names stacks: turn on the feature `analyze` of memory-dmd")
    };
}
pub use memory_reporter::watching::{
    AllocationsLogEntry, ClassName, MemoryObserver, NurseryRegistration, ObserverError, SavedStack,
    SiteFrame, allocation_site, describe_block, register_nursery,
};
pub use options::{BadEntry, BlackBox, Mode, Options, Run, Stacks};
pub use sampler::Sampler;
