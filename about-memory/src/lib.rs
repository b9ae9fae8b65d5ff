//! Views of memory reports: Firefox's about:memory as text, for any Rust program.
#![forbid(unsafe_code)]

mod escape;
mod filter;
mod layout;
mod number;
mod text;

pub use escape::text as escape;
pub use filter::{Filter, FilterError};
pub use text::{Text, text};
