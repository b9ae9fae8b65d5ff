//! Parquet: reports, stacks and censuses of many runs as tables, for SQL.
//!
//! | table | a row is | from | sorted by |
//! | --- | --- | --- | --- |
//! | [`reports`] | a report | a `ReportSet` | service, process, path, ts |
//! | [`warnings`] | a warning | a `ReportSet` | service, ts |
//! | [`stacks`] | the blocks of a stack with one owner and type | [`StackProfile`](crate::StackProfile) | `stack_id` |
//! | [`frames`] | a stack, with its frames, the innermost first | [`StackProfile`](crate::StackProfile) | `stack_id` |
//! | [`census`] | a group of a census of a heap graph | [`CensusRow`]s | by, group |
//!
//! The first columns of a table identify the [`ParquetRun`] of a row. Times are microseconds since 1970 in UTC. Amounts
//! are signed 64-bit integers; the unit is in the row or in the column's description. A larger amount is an
//! [`ExportError`](crate::ExportError). Pages are compressed with zstd. Texts have dictionaries. The files declare
//! their sort order and have page indexes, and `path` has a Bloom filter, so that a reader skips data that a query does
//! not need. Equal data gives equal bytes.
//!
//! The key-value metadata of a file has `memory_report.schema` (the [version](SCHEMA_VERSION) of the columns),
//! `memory_report.table`, `memory_report.units` and `memory_report.runs` (the ids of the file's runs). Later versions only
//! add nullable columns.
//!
//! [`file_name`] returns the path of a file below a folder. The path has hive folders for the date and the service, so
//! that readers can skip folders; the folder's name differs from the column `service`, because some readers reject a
//! folder with the name of a column. The file's name is the run's id, so that a second export of a run replaces the first.
//!
//! Source: the format's documentation (`LogicalTypes.md`, `Compression.md` of apache/parquet-format).
//!
//! ```
//! use std::time::Duration;
//!
//! use memory_export::parquet::{self, ParquetOptions, ParquetRun};
//! use memory_report::{Kind, Report, ReportSet, Units};
//!
//! let mut set = ReportSet::new();
//! let (path, description) = ("explicit/cache", "Memory used by the cache.");
//! set.push(Report { process: "app (pid 7)", path, kind: Kind::Heap, units: Units::Bytes, amount: 42, description });
//! let run = ParquetRun::new("search", Duration::from_secs(1_763_856_000)).with_id_from_reports(&set);
//!
//! let mut file = Vec::new();
//! parquet::reports(&[(&run, &set)], &ParquetOptions::new(), &mut file)?;
//! assert!(file.starts_with(b"PAR1"));
//! assert!(parquet::file_name("reports", &run).starts_with("reports/date=2025-11-23/service_folder=search/"));
//! # Ok::<(), memory_export::ExportError>(())
//! ```

mod census;
mod census_row;
mod columns;
mod frames;
mod hash;
mod hive;
mod options;
mod order;
mod reports;
mod run;
mod stack_ids;
mod stacks;
mod table;
mod threads;
mod warnings;

pub use census::census;
pub use census_row::CensusRow;
pub use frames::frames;
pub use hive::{date, file_name, folder_name};
pub use options::{ParquetOptions, SCHEMA_VERSION};
pub use reports::reports;
pub use run::ParquetRun;
pub use stacks::stacks;
pub use warnings::warnings;
