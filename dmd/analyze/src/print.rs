//! How all texts write numbers, text from dumps, and JSON.

mod amounts;
mod escape;
mod json;

pub(crate) use amounts::{blocks, mark, number, percent, share};
pub(crate) use escape::CleanText;
pub(crate) use json::{JsonString, list};
