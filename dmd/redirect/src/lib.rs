//! Finds the allocator inside a program's file, and every reference to its functions.
//!
//! A program that links jemalloc or mimalloc statically does not call `malloc`. It reaches the allocator's functions
//! through a few words (slots of the global offset table), and through instructions into which the linker folded such a
//! word. This crate lists all these references: a [`RedirectPlan`]. To apply the plan, a caller rewrites each
//! reference, so that it leads to a hook. The functions themselves stay as they are, so a hook calls the original by
//! its address.
//!
//! A plan is all or nothing: if one reference to an allocator's functions cannot be redirected, there is a
//! [`RefusalReason`] instead of a plan. If a hook saw allocations but missed frees, every figure would be wrong.
//!
//! The crate only reads: files ([`elf`]), and the bytes of segments. All addresses are addresses of the file. In a
//! process, the caller adds the distance at which the loader placed the file.
//!
//! `families` is the one table of allocators, `functions` has their functions, `symbols` and `wrappers` find these in a
//! file, `references` finds the references, `encodings` has the forms of instructions, and `plan` decides.

#![forbid(unsafe_code)]

pub mod elf;
pub mod encodings;
mod families;
mod file_image;
mod functions;
mod plan;
mod references;
mod symbols;
mod wrappers;

pub use families::{AllocatorFamily, FAMILIES};
pub use file_image::FileImage;
pub use functions::{AllocatorFunction, FunctionCall, MAX_ARGUMENTS};
pub use plan::{
    AllocatorFunctionName, AllocatorPlan, ExportedFunction, PlannedFunction, RedirectPlan, RefusalReason,
    count_words, plan_redirects,
};
pub use references::{CodeReference, CodeSegment, LoadedImage, Reference, ReferenceForm};
