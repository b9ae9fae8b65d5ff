//! The definition of reporters and reports: the trait, the registry, the rules of reports, the counters of foreign
//! code, and the reports that every program has.

mod claims;
mod contexts;
mod conventions;
mod counted_tags;
mod heap_figures;
mod keyed_tags;
mod macros;
mod memory_reporter;
mod open_guards;
mod path_tags;
mod reporter_name;
mod reports;
mod resident_map;
mod scoped_future;
mod stated;
mod tag_limits;
mod tag_names;
mod tag_pause;
mod tagged_future;
mod wrapped;

pub mod amounts;
pub mod counters;
pub mod scopes;
pub mod tags;

pub(crate) mod builtin;
pub(crate) mod isolation;
pub(crate) mod local_reporters;
pub(crate) mod name_pattern;
pub(crate) mod registry;

pub use conventions::{amount, assert_description, assert_kind, assert_path};
pub use local_reporters::{LocalRegistration, register_local};
pub use macros::OneReport;
pub use memory_reporter::MemoryReporter;
pub use name_pattern::StaticNamePattern;
pub use registry::{Registration, register_strong, register_weak};
pub use reports::Reports;
pub use tags::tag;

pub(crate) use claims::ByAmount;
pub(crate) use contexts::{CountingTag, counting_tags, tag_paths};
pub(crate) use conventions::is_explicit;
pub(crate) use reporter_name::ReporterName;
pub(crate) use resident_map::ResidentMap;
pub(crate) use tag_names::TagPaths;
