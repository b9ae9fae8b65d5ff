//! Runs reporters: the driver, the admission of collections, memory pressure, and the checks and reports that follow
//! after all reporters.

mod admission;
mod answer_here;
mod collector;
mod consistency;
mod dark_matter;
mod driver;
mod one_run;
mod program;
mod tag_rows;
mod times;

mod near_limit;
pub mod pressure;

pub use answer_here::answer_here;
pub use driver::{CollectOptions, Collection, collect, collect_reports};
pub use program::run_reporters;

#[cfg(feature = "live")]
pub(crate) use program::{ForDump, for_dump};
