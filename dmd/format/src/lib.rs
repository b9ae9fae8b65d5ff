//! The formats that DMD's engine and its readers share.
//!
//! The crate opens no file and contains no unsafe code. It is linked into measured programs, so it has only two small
//! dependencies. Input is untrusted: each decoder has limits, and an error contains the position of the fault.
//!
//! ```
//! use dmd_format::recording::{ChunkKind, ChunkReader, MAGIC, push_chunk};
//!
//! let mut file = MAGIC.to_vec();
//! push_chunk(&mut file, ChunkKind::Events, b"a thread's events");
//!
//! let mut chunks = ChunkReader::open(&file[..])?;
//! let chunk = chunks.next().expect("one chunk")?;
//! assert_eq!(chunk.kind(), Some(ChunkKind::Events));
//! assert_eq!(chunk.payload, b"a thread's events");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crate does not record (`dmd` does that). It also does not read the JSON of dumps, replay recordings or look up
//! symbols (`dmd-analyze` does that).
//!
//! # Structure
//!
//! - [`recording`] is the format of a recording: chunks of events, stacks, modules and threads.
//! - [`tables`] is the layout of the engine's tables, for readers outside of the process.
//! - [`sample`] computes how many blocks a sampled block represents.
//! - [`kept_dump`] has the names of the dumps that a black box keeps, and the last sign of life in such a file.
//! - [`Mode`] selects which blocks and data DMD records.
//! - [`first_process`] is a suffix of `$DMD` that identifies the first process of a run.
//! - [`LINKED_MARK`] marks the file of a program that contains the wrapper `dmd::Dmd`.

#![forbid(unsafe_code)]

pub mod first_process;
pub mod kept_dump;
mod linked_mark;
mod mode;
pub mod recording;
pub mod sample;
pub mod tables;

pub use linked_mark::LINKED_MARK;
pub use mode::Mode;
