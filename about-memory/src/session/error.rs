//! The reasons why a session cannot answer.

use thiserror::Error;

use super::id::SnapshotId;

/// The reason why a session cannot answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The session has no snapshot with this number.
    #[error("there is no snapshot {0}")]
    NoSnapshot(SnapshotId),
    /// The session has not read the snapshot. Contains the name of the snapshot's state.
    #[error("snapshot {0} has no graph yet: its state is {1}")]
    NotRead(SnapshotId, &'static str),
    /// The snapshot has no node with this id.
    #[error("no node has the id {0}")]
    NoNode(u64),
    /// The analysis failed, for this reason.
    #[error("{0}")]
    Failed(String),
    /// A reader cancelled the computation, or no front end waits for it any more.
    #[error("cancelled")]
    Cancelled,
    /// Too many computations run. Contains the limit.
    #[error("{0} computations run already; try again when one has ended")]
    Busy(usize),
    /// The session already has its maximum number of snapshots. Contains the limit.
    #[error("there are {0} snapshots already; remove one")]
    Full(usize),
    /// The query exceeds a limit. Contains the name of the quantity, and the limit.
    #[error("{0}: at most {1} are allowed")]
    TooMuch(&'static str, usize),
}
