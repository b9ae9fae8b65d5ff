//! The rows of the table `census`.

/// A group of a census of a heap graph.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(clippy::exhaustive_structs, reason = "a row of the table")]
pub struct CensusRow {
    /// The breakdown: the rule that groups the nodes.
    pub by: String,
    /// The names that lead to the group, outermost first.
    pub group: Vec<String>,
    /// The bytes of the group's own nodes.
    pub bytes: i64,
    /// The number of the group's own nodes.
    pub count: i64,
    /// The retained size: the bytes of the group's nodes, and of all nodes that would be freed with them. `None` if it
    /// is unknown. Retained sizes of different groups may overlap.
    pub retained: Option<i64>,
}
