//! Running reporters: the driver, which collections may begin, memory pressure, and what is checked and added once
//! all reporters have run.

mod admission;
mod collector;
mod consistency;
mod dark_matter;
mod driver;
mod pressure;
mod program;

pub use driver::{CollectOptions, Collection, collect_reports};
pub use pressure::{PressureHook, minimize_memory_usage, on_memory_pressure};
pub use program::run_reporters;
