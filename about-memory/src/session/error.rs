//! The reasons why a session cannot answer.

use core::fmt;

use super::id::SnapshotId;

/// The reason why a session cannot answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionError {
    /// The session has no snapshot with this number.
    NoSnapshot(SnapshotId),
    /// The session has not read the snapshot. Contains the name of the snapshot's state.
    NotRead(SnapshotId, &'static str),
    /// The snapshot has no node with this id.
    NoNode(u64),
    /// The analysis failed, for this reason.
    Failed(String),
    /// A reader cancelled the computation, or no front end waits for it any more.
    Cancelled,
    /// Too many computations run. Contains the limit.
    Busy(usize),
    /// The session already has its maximum number of snapshots. Contains the limit.
    Full(usize),
    /// The query exceeds a limit. Contains the name of the quantity, and the limit.
    TooMuch(&'static str, usize),
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSnapshot(id) => write!(f, "there is no snapshot {id}"),
            Self::NotRead(id, state) => write!(f, "snapshot {id} has no graph yet: its state is {state}"),
            Self::NoNode(id) => write!(f, "no node has the id {id}"),
            Self::Failed(reason) => f.write_str(reason),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Busy(most) => write!(f, "{most} computations run already; try again when one has ended"),
            Self::Full(most) => write!(f, "there are {most} snapshots already; remove one"),
            Self::TooMuch(what, most) => write!(f, "{what}: at most {most} are allowed"),
        }
    }
}

impl std::error::Error for SessionError {}
