//! The bounded reader of JSON that reads dumps, and what goes with it.

pub(crate) use memory_reporter::ReadError;
pub(crate) use memory_reporter::file::__private::{Scan, Skip, Source, Stop, Window, is_deceptive};
