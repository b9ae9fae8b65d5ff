//! The rows of the table `census`.

/// A group of a census of a heap graph.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(clippy::exhaustive_structs, reason = "a row of the table")]
pub struct CensusRow {
    /// The breakdown: how nodes are grouped.
    pub by: String,
    /// The names that lead to the group, the outermost first.
    pub group: Vec<String>,
    /// The bytes of the group's own nodes.
    pub bytes: i64,
    /// The number of the group's own nodes.
    pub count: i64,
    /// The bytes of the group's nodes and of all that one of these nodes alone keeps alive, if they are known. Those of
    /// different groups overlap.
    pub retained: Option<i64>,
}
