//! Converts dumps and recordings of DMD to [`StackProfile`](crate::StackProfile).
//!
//! A dump has the live blocks of one time or, in cumulative mode, all blocks ever allocated. Each sample has the stack,
//! the size, and labels: the type, whether reporters reported the blocks, and the reporters. A recording becomes a
//! [`RecordingHistory`]. [`dump`] converts a profile of another program to a dump.

mod dump;
mod error;
mod from_profile;
mod history;
mod options;
mod stack_ids;
mod stack_types;

pub use dump::{difference, stacks};
pub use error::ProfileError;
pub use from_profile::dump;
pub use history::{RecordingHistory, RecordingWindow};
pub use options::ProfileOptions;
