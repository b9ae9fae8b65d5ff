//! The contents of a front end for heap snapshots, without a server or a screen: snapshots, censuses, tree maps,
//! differences, dominator trees, individuals, paths, and the jobs that compute them.
//!
//! A [`Session`] holds all state, so that a reloaded page or a second page loses no data. A front end asks with a
//! [`Query`] and gets a [`PendingAnswer`]. Equal queries share one computation, and results stay in memory under a
//! budget ([`SessionOptions::budget`]). Each change of a state is a [`SessionEvent`] with a number. The states of a
//! snapshot are the states of Firefox's Memory tool (`devtools/client/memory/constants.js` and `reducers/`). A
//! computation has the state `computing`, and then `computed`, `cancelled` or `error`.
//!
//! # Where Firefox's panel answers differently
//!
//! - A failure is part of the state, so that a front end can show any failure.
//! - Every snapshot can be removed, even if it failed or is not saved yet.
//! - A failed difference keeps its two snapshots, and [`Session::ask`] tries again.
//! - Paths are computed for one node. The session keeps the walk that all paths of a snapshot share, so that further
//!   paths take milliseconds.
//! - Open rows are identified by node, so that they stay open with another label or filter.
//! - Rows are returned in windows, sorted by any column.

mod answer;
mod cache;
mod column;
mod compute;
mod engine;
mod error;
mod event;
mod files;
mod forest;
mod generations;
mod group_id;
mod id;
mod jobs;
mod nodes;
mod orders;
mod pending;
mod query;
mod rows;
mod rows_options;
mod snapshots;
mod state;
mod store;
mod suspect_rows;

pub use answer::{PathStep, QueryAnswer, SuspectClass, SuspectGroup, TreeMapBox};
pub use column::{RowColumn, RowSort};
pub use error::SessionError;
pub use event::{EventLog, EventSubject, SessionEvent};
pub use generations::Generations;
pub use id::{JobId, SnapshotId};
pub use jobs::SessionJob;
pub use pending::PendingAnswer;
pub use query::{GroupBy, GroupByError, Query};
pub use rows::{RowWindow, SessionRow};
pub use rows_options::RowsOptions;
pub use snapshots::SnapshotInfo;
pub use state::SnapshotState;
pub use store::{Session, SessionOptions};
