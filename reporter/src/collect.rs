//! Running reporters: the driver, which collections may begin, memory pressure, and what is checked and added once
//! all reporters have run.

mod admission;
mod answer_here;
mod collector;
mod consistency;
mod dark_matter;
mod driver;
mod one_run;
mod pressure;
mod program;
mod tag_rows;
mod times;

pub use answer_here::answer_here;
pub use driver::{CollectOptions, Collection, collect_reports};
pub use pressure::{AllocatorPurge, MemoryPressure, PressureHook, minimize_memory_usage, on_memory_pressure};
pub use program::run_reporters;

#[cfg(feature = "live")]
pub(crate) use program::{ForDump, for_dump};
