//! The names of edges: the fields from the start of a block or value to one of its parts.

use hashbrown::HashMap;
use memory_reporter::measure::Edge;

use super::descriptions::NodeDescriptions;
use crate::graph::GraphTextId;

/// The number of a path of fields, from the start of a block or value to one of its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FieldPath(u32);

impl FieldPath {
    /// The path of the block or value itself.
    pub(super) const EMPTY: Self = Self(0);
}

/// All paths of a walk and their names.
pub(super) struct FieldPaths {
    /// For a path and an edge: the path continued by that edge.
    longer: HashMap<(FieldPath, Edge), FieldPath>,
    /// The name of each path; the empty path has no name.
    names: Vec<Option<GraphTextId>>,
}

impl FieldPaths {
    pub(super) fn new() -> Self {
        Self { longer: HashMap::new(), names: vec![None] }
    }

    pub(super) fn name(&self, path: FieldPath) -> Option<GraphTextId> {
        self.names[path.0 as usize]
    }

    /// The path that continues `from` by one edge.
    pub(super) fn step(
        &mut self,
        from: FieldPath,
        edge: Edge,
        descriptions: &mut NodeDescriptions<'_>,
    ) -> FieldPath {
        if let Some(known) = self.longer.get(&(from, edge)) {
            return *known;
        }
        let step = match edge {
            Edge::Field(field) => field.to_owned(),
            Edge::VariantField(variant, field) => format!("{variant}.{field}"),
            Edge::Key => "key".to_owned(),
            Edge::Value => "value".to_owned(),
            // An element of a sequence, or an edge of a later version of the walk.
            _ => "element".to_owned(),
        };
        let name = match self.name(from) {
            Some(before) => format!("{}.{step}", descriptions.text_of(before)),
            None => step,
        };
        let name = descriptions.text(&name);
        self.names.push(Some(name));
        let number = u32::try_from(self.names.len() - 1).expect("a program has fewer than 2^32 fields");
        self.longer.insert((from, edge), FieldPath(number));
        FieldPath(number)
    }
}
