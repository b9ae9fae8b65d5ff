//! The columns of rows, and their order.

use serde::Deserialize;

/// A column of rows. In JSON, a column is its [`name`](Self::name).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
#[allow(clippy::exhaustive_enums, reason = "a front end shows each of them")]
pub enum RowColumn {
    /// Bytes of the group itself.
    Bytes,
    /// The nodes of the group itself.
    Count,
    /// Bytes of the group and of all groups below.
    TotalBytes,
    /// The nodes of the group and of all groups below.
    TotalCount,
    /// Bytes that a node alone keeps alive, itself included.
    Retained,
    /// Bytes of the node itself.
    Shallow,
    /// The growth of the group from the first to the last of several snapshots.
    Growth,
    /// Bytes of the group in one of several snapshots, by the snapshot's index.
    In(u8),
    /// The name. This column contains no number.
    Name,
}

/// All columns with their names, except the columns of several snapshots.
const COLUMNS: [(RowColumn, &str); 8] = [
    (RowColumn::Bytes, "bytes"),
    (RowColumn::Count, "count"),
    (RowColumn::TotalBytes, "total-bytes"),
    (RowColumn::TotalCount, "total-count"),
    (RowColumn::Retained, "retained"),
    (RowColumn::Shallow, "shallow"),
    (RowColumn::Growth, "growth"),
    (RowColumn::Name, "name"),
];

impl RowColumn {
    /// Returns the column's name, such as `total-bytes` or `in-0`.
    pub fn name(self) -> String {
        match self {
            Self::In(place) => format!("in-{place}"),
            other => {
                COLUMNS.iter().find(|(column, _)| *column == other).map_or("", |(_, name)| name).to_owned()
            }
        }
    }
}

impl TryFrom<String> for RowColumn {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let of_snapshot = || name.strip_prefix("in-")?.parse().ok().map(Self::In);
        let known = COLUMNS.iter().find(|(_, known)| *known == name).map(|(column, _)| *column);
        known.or_else(of_snapshot).ok_or_else(|| format!("no column has the name {name}"))
    }
}

/// An order of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[allow(clippy::exhaustive_structs, reason = "a column and a direction")]
pub struct RowSort {
    /// The column.
    pub column: RowColumn,
    /// Whether the smallest row is first.
    #[serde(default)]
    pub ascending: bool,
}
