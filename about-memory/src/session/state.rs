//! The states of what a session holds, and the transitions between them.
//!
//! The states and transitions are those of Firefox's Memory tool. Each machine is an enum with data; `may_become` has
//! the only list of its transitions.

use core::fmt;

/// A state that has a name for front ends and a list of transitions.
pub trait State: Sized {
    /// The name in events, such as `reading`.
    fn name(&self) -> &'static str;

    /// The reason of a failure; `None` in any other state.
    fn error(&self) -> Option<&str>;

    /// Whether the state may change to `next`.
    fn may_become(&self, next: &Self) -> bool;

    /// Changes the state.
    ///
    /// # Errors
    ///
    /// [`Misstep`] if there is no such transition; the state stays.
    fn advance(&mut self, next: Self) -> Result<(), Misstep> {
        if !self.may_become(&next) {
            return Err(Misstep { from: self.name(), to: next.name() });
        }
        *self = next;
        Ok(())
    }
}

/// A transition that a state does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Misstep {
    /// The state before.
    pub from: &'static str,
    /// The state that was to follow.
    pub to: &'static str,
}

impl fmt::Display for Misstep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the state {} does not lead to {}", self.from, self.to)
    }
}

impl std::error::Error for Misstep {}

macro_rules! state {
    (
        $(#[$about:meta])* $name:ident {
            $($(#[$of:meta])* $state:ident = $word:literal),* $(,)?
        }
        $($from:ident -> $($to:ident)|+);* $(;)?
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[allow(clippy::exhaustive_enums, reason = "a front end shows each state")]
        pub enum $name {
            $($(#[$of])* $state,)*
            /// It failed, for this reason.
            Error(String),
        }

        impl State for $name {
            fn name(&self) -> &'static str {
                match self {
                    $(Self::$state => $word,)*
                    Self::Error(_) => "error",
                }
            }

            fn error(&self) -> Option<&str> {
                match self {
                    Self::Error(reason) => Some(reason),
                    _ => None,
                }
            }

            fn may_become(&self, next: &Self) -> bool {
                match (self, next) {
                    $($((Self::$from, Self::$to) => true,)+)*
                    // A failure is final; another try is another computation, which begins anew.
                    (Self::Error(_), _) => false,
                    (_, Self::Error(_)) => true,
                    _ => false,
                }
            }
        }
    };
}

state! {
    /// The state of a snapshot.
    SnapshotState {
        /// A process writes it.
        Saving = "saving",
        /// It is in a file, which nobody has read.
        Saved = "saved",
        /// A front end sends the file.
        Importing = "importing",
        /// The session reads the file.
        Reading = "reading",
        /// The session has its graph and answers queries.
        Read = "read",
    }
    Saving -> Saved;
    Saved -> Reading;
    Importing -> Reading;
    Reading -> Read;
}

state! {
    /// The state of a census.
    CensusState {
        /// The session takes it.
        Saving = "saving",
        /// The session has it.
        Saved = "saved",
    }
    Saving -> Saved;
    Saved -> Saving;
}

state! {
    /// The state of a tree map.
    TreeMapState {
        /// The session takes it.
        Saving = "saving",
        /// The session has it.
        Saved = "saved",
    }
    Saving -> Saved;
    Saved -> Saving;
}

state! {
    /// The state of a difference between snapshots.
    DiffState {
        /// The reader chooses the snapshots.
        Selecting = "selecting",
        /// The session computes it.
        TakingDiff = "taking-diff",
        /// The session has it.
        TookDiff = "took-diff",
    }
    Selecting -> TakingDiff;
    TakingDiff -> TookDiff;
    TookDiff -> TakingDiff;
}

state! {
    /// The state of a dominator tree.
    DominatorState {
        /// The session computes the tree.
        Computing = "computing",
        /// The session has the tree.
        Computed = "computed",
        /// The session takes the first rows.
        Fetching = "fetching",
        /// The session has the rows.
        Loaded = "loaded",
        /// The session takes more rows.
        IncrementalFetching = "incremental-fetching",
    }
    Computing -> Computed;
    Computed -> Fetching;
    Fetching -> Loaded;
    Loaded -> IncrementalFetching;
    IncrementalFetching -> Loaded;
}

state! {
    /// The state of the nodes behind a row of a census.
    IndividualsState {
        /// The session computes the dominator tree, which their order needs.
        ComputingDominatorTree = "computing-dominator-tree",
        /// The session finds the nodes.
        Fetching = "fetching",
        /// The session has the nodes.
        Fetched = "fetched",
    }
    ComputingDominatorTree -> Fetching;
    Fetching -> Fetched;
}

/// What a reader looks at. Individuals remember the view that led to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a front end shows each view")]
pub enum ViewState {
    /// The tree map of a snapshot.
    #[default]
    TreeMap,
    /// The census of a snapshot.
    Census,
    /// The dominator tree of a snapshot.
    DominatorTree,
    /// A difference.
    Diffing,
    /// The nodes behind a row of the view that is inside.
    Individuals(Box<ViewState>),
}

impl ViewState {
    /// The view of the nodes behind a row of this view. Individuals of individuals are the same view.
    #[must_use]
    pub fn individuals(self) -> Self {
        match self {
            Self::Individuals(_) => self,
            view => Self::Individuals(Box::new(view)),
        }
    }

    /// The view before the individuals; any other view stays.
    #[must_use]
    pub fn back(self) -> Self {
        match self {
            Self::Individuals(before) => *before,
            view => view,
        }
    }
}
