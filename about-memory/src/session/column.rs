//! The columns of rows, and their order.

use serde::Deserialize;

/// A column of numbers. In JSON it is its [`name`](Self::name).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
#[allow(clippy::exhaustive_enums, reason = "a front end shows each of them")]
pub enum RowColumn {
    /// Bytes of the group itself.
    Bytes,
    /// The nodes of the group itself.
    Count,
    /// Bytes of the group and all below.
    TotalBytes,
    /// The nodes of the group and all below.
    TotalCount,
    /// Bytes that a node alone keeps alive, itself included.
    Retained,
    /// Bytes of the node itself.
    Shallow,
    /// How much the group grew from the first to the last of several snapshots.
    Growth,
    /// Bytes of the group in one of several snapshots, by its place.
    In(u8),
    /// The name, not a number.
    Name,
}

/// The columns that are not of one of several snapshots, with their names.
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
    /// Its name: `total-bytes`, `in-0`.
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
    /// Whether the least comes first.
    #[serde(default)]
    pub ascending: bool,
}
