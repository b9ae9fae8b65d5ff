//! The states of a snapshot, and the transitions between them. They equal the states of Firefox's Memory tool.

/// The state of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a front end shows each state")]
pub enum SnapshotState {
    /// A process is writing the snapshot.
    Saving,
    /// The snapshot is in a file that the session has not read yet.
    Saved,
    /// A front end is sending the file.
    Importing,
    /// The session is reading the file.
    Reading,
    /// The session has the graph and answers queries.
    Read,
    /// The snapshot failed, for this reason.
    Error(String),
}

impl SnapshotState {
    /// Returns the name of the state in events, such as `reading`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Saving => "saving",
            Self::Saved => "saved",
            Self::Importing => "importing",
            Self::Reading => "reading",
            Self::Read => "read",
            Self::Error(_) => "error",
        }
    }

    /// Returns the reason of a failure; `None` in any other state.
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Error(reason) => Some(reason),
            _ => None,
        }
    }

    /// Whether the state may change to `next`. A failure is final.
    pub(super) fn may_become(&self, next: &Self) -> bool {
        match (self, next) {
            (Self::Error(_), _) => false,
            (_, Self::Error(_)) => true,
            (Self::Saving, Self::Saved)
            | (Self::Saved | Self::Importing, Self::Reading)
            | (Self::Reading, Self::Read) => true,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SnapshotState::{Error, Importing, Read, Reading, Saved, Saving};

    #[test]
    fn snapshots_have_the_transitions_of_firefox() {
        let all = [Saving, Saved, Importing, Reading, Read, Error(String::new())];
        for from in &all {
            for to in &all {
                let expected = match from.name() {
                    "saving" => ["saved", "error"].contains(&to.name()),
                    "saved" | "importing" => ["reading", "error"].contains(&to.name()),
                    "reading" => ["read", "error"].contains(&to.name()),
                    "read" => to.name() == "error",
                    _ => false,
                };
                assert_eq!(from.may_become(to), expected, "{from:?} {to:?}");
            }
        }
    }
}
