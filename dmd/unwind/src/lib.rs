//! Walks the stack of the running thread and gives the return addresses of its callers.
//!
//! ```
//! # #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))] {
//! let mut callers = [0; 64];
//! let (count, _end) = dmd_unwind::capture_here(&mut callers);
//! assert!(count > 0);
//! # }
//! ```
//!
//! The walker may run inside `malloc` and `free`, and in signal handlers. It allocates nothing (its tables are
//! separate mappings), waits for no lock, and cannot panic. It changes neither `errno` nor any other state of the
//! program. It reads stack memory only if it is certain that the memory is mapped.
//!
//! # How the parts work together
//!
//! At the first walk through a pc, the walker compiles a *rule* from `.eh_frame`: the CFA is the stack or frame
//! pointer plus a constant, and the rule contains where the frame pointer and the return address are saved. One table
//! contains the rules for all threads. A later step is one lookup, one or two comparisons and one or two loads. Code
//! with a frame pointer needs no special step: its rule counts from the frame pointer. Other frames need the general
//! step, which follows all registers and supports all of DWARF: `.plt` entries, realigned stacks, signal frames.
//!
//! ```text
//! incremental   a walk that reuses the thread's last walk; words are the words that its steps read
//! capture       a walk into a list
//! walker        the loop: packed rule, else wide rule, else general step
//! cache         pc -> rule, and the modules to which the rules belong
//! rule          row -> rule
//! general       the general step; registers contains the known values
//! row, eh_frame, expression, reader    DWARF
//! loaded        path, load address and build id of the module of a pc
//! module        pc -> module -> sections
//! stack         the memory that a walk may read
//! own           the limits of the thread's own stack
//! ```
//!
//! A usual step depends only on the [`StackFrame`] and the words that the step reads. So a walk can stop at a frame of
//! the thread's last walk if all words of the outer frames are unchanged: see [`LastStack`].
//!
//! # Limits
//!
//! The crate does not walk through code without unwind information, for example code of JIT compilers: such code ends
//! a walk. It does not look up names of functions, and does not walk stacks of other threads. On systems other than
//! Linux on `x86_64` and `aarch64`, the crate is empty.

#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#![deny(unsafe_code)]

#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
#[allow(unsafe_code, reason = "reads registers")]
mod arch;
#[allow(unsafe_code, reason = "a table read without a lock")]
mod cache;
mod capture;
mod eh_frame;
mod expression;
mod general;
#[allow(unsafe_code, reason = "reads the stack")]
mod incremental;
mod interrupted;
mod loaded;
#[allow(unsafe_code, reason = "reads the loader's tables")]
mod module;
#[allow(unsafe_code, reason = "reads the thread's control block")]
mod own;
mod reader;
mod registers;
mod row;
mod rule;
mod sections;
#[allow(unsafe_code, reason = "reads the stack")]
mod stack;
#[allow(unsafe_code, reason = "system calls")]
mod sys;
mod walker;
mod words;

pub use arch::{Caller, Registers};
pub use cache::{after_fork_in_child, compiled_rules, mapped_bytes, replaced};
pub use capture::{capture, capture_here, fill};
pub use incremental::{LastStack, MOST};
pub use interrupted::is_interrupted_here;
pub use loaded::{LoadedLibrary, ModuleSample, is_loaded, loaded, sample_at};
pub use sections::{Sections, module_both_ways};
pub use stack::StackRange;
pub use sys::{is_readable, mapped_ranges};
pub use walker::{StackFrame, WalkEnd, walk};
