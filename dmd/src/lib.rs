//! DMD, the dark matter detector: which stacks allocated what no memory reporter reports.
#![deny(unsafe_code)]

#[cfg(feature = "analyze")]
pub mod analyze;
#[cfg(feature = "analyze")]
pub mod symbolize;
