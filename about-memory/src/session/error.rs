//! Why a session gives no answer.

use core::fmt;

use super::id::SnapshotId;

/// Why a session gives no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionError {
    /// The session has no such snapshot.
    NoSnapshot(SnapshotId),
    /// The session has not read the snapshot; contains the name of its state.
    NotRead(SnapshotId, &'static str),
    /// The snapshot has no node with this id.
    NoNode(u64),
    /// The analysis failed, for this reason.
    Failed(String),
    /// The reader cancelled the computation, or the last waiting front end left.
    Cancelled,
    /// Too many computations run; contains their number.
    Busy(usize),
    /// The session has as many snapshots as it may have; contains their number.
    Full(usize),
    /// The query is out of bounds: what, and its greatest value.
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
