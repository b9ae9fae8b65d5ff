//! Memory tables of many processes over months.
//!
//! `about-memory export --append-to` and this crate write Parquet tables of reports. [`FleetSession`] opens such tables
//! in DataFusion, and answers [`Question`]s or SQL with an [`Answer`]: a table, notes, and the next commands to type.
//! [`collect`] takes the reports of running processes, [`import`] those in files, [`compact`] merges files, and
//! [`simulate`] writes the tables of processes that do not exist.
//!
//! The crate has no query engine, scheduler, store or table format of its own.
#![forbid(unsafe_code)]

mod answer;
mod batch_columns;
mod buckets;
#[cfg(feature = "ballista")]
mod cluster;
mod collect;
mod compact;
mod day;
mod engine;
mod error;
mod folder;
mod import;
mod life;
mod questions;
mod serve;
mod session;
mod simulate;
mod stack_path;
mod statistics;
mod table;
mod table_writer;

pub mod cli;

pub use answer::{Answer, AnswerFormat, ColumnUnit};
pub use buckets::{BUCKET_SECONDS, BUCKETS};
pub use collect::{CollectOptions, CollectTarget, CollectedRound, collect, parse_targets};
pub use compact::{CompactOptions, Compaction, compact};
pub use day::Day;
pub use engine::QueryEngine;
pub use error::FleetError;
pub use folder::{DayRange, TableFile, TableFolder, TableListing};
pub use import::{Imported, RunFacts, import};
pub use questions::{Question, QuestionOptions};
pub use serve::{FleetServer, PageOptions};
pub use session::{FleetSession, QuestionSubject, SessionOptions, TABLES};
pub use simulate::{PlantedCause, PlantedKind, SimulationOptions, SimulationTruth, simulate};
pub use statistics::{ChangePoint, change_points};
