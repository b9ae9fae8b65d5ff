//! Prints numbers, texts from dumps, and JSON, in the same way for all views.

mod amounts;
mod escape;
mod json;

pub(crate) use amounts::{blocks, mark, number, percent, share};
pub(crate) use escape::CleanText;
pub(crate) use json::{JsonString, list};
