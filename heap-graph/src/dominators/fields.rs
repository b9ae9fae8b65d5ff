//! The bytes that each field of each type keeps alive.

use hashbrown::HashMap;

use super::DominatorTree;
use super::NOT_CANCELLED;
use super::group_retained::retained_by_each;
use crate::graph::{GraphText, GraphTextId, NodeIndex};
use crate::progress::{AnalysisProgress, CancelledError};

/// The nodes that one field of one class dominates.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FieldSizes<'a> {
    /// The class of the nodes with the field; for nodes without a class, their type.
    pub holder: GraphText<'a>,
    /// The name of the edges. `None` if the edges have no name, or if only several edges together keep a node alive.
    pub field: Option<GraphText<'a>>,
    /// The number of nodes.
    pub count: u64,
    /// The bytes of the nodes themselves.
    pub shallow_size: u128,
    /// The bytes of the nodes and of all nodes that only they keep alive, each byte once.
    pub retained_size: u128,
}

impl FieldSizes<'_> {
    /// The holder and the field for display. The path of a field starts with a dot or a bracket, and results in
    /// `Session.users[].1`. Another name results in `Session: shape`.
    pub fn name(&self) -> String {
        let Self { holder, field, .. } = self;
        match field.as_ref().map(GraphText::to_string) {
            None => format!("{holder} (held in several ways, or by an unnamed edge)"),
            // In the name of a slice type, the brackets mean its elements.
            Some(path) if path.starts_with("[]") && holder.to_string().starts_with('[') => {
                format!("{holder}{}", &path[2..])
            }
            Some(path) if path.starts_with(['.', '[']) => format!("{holder}{path}"),
            Some(name) => format!("{holder}: {name}"),
        }
    }
}

/// A class and a name of edges.
type FieldKey = (GraphTextId, Option<GraphTextId>);

/// The sizes by field, ordered by retained size, the largest first. Fields with equal retained sizes are in the order
/// of the graph.
///
/// A node counts for the edge from its immediate dominator. If the dominator has several edges to the node, the node
/// counts for the first of these edges. If the dominator reaches the node only through other nodes, on several paths,
/// the node counts for the dominator without a field. The retained sizes of different fields overlap: a field also
/// retains the nodes that the fields below it retain.
pub fn sizes_by_field<'a>(tree: &DominatorTree<'a>) -> Vec<FieldSizes<'a>> {
    sizes_by_field_watched(tree, &AnalysisProgress::new()).expect(NOT_CANCELLED)
}

/// [`sizes_by_field`] with an [`AnalysisProgress`], which shows the progress and can cancel the analysis.
///
/// # Errors
///
/// Returns a [`CancelledError`] if the analysis was cancelled.
pub fn sizes_by_field_watched<'a>(
    tree: &DominatorTree<'a>,
    progress: &AnalysisProgress,
) -> Result<Vec<FieldSizes<'a>>, CancelledError> {
    let graph = tree.graph();
    let mut places: HashMap<FieldKey, u32> = HashMap::new();
    let mut fields: Vec<FieldSizes<'a>> = Vec::new();
    let mut place_of = |field: FieldKey| {
        *places.entry(field).or_insert_with(|| {
            let (holder, name) = field;
            fields.push(FieldSizes {
                holder: graph.text(holder),
                field: name.map(|name| graph.text(name)),
                count: 0,
                shallow_size: 0,
                retained_size: 0,
            });
            fields.len() as u32 - 1
        })
    };
    const NONE: u32 = u32::MAX;
    let mut of_nodes = vec![NONE; graph.node_count()];
    for holder in graph.nodes().filter(|holder| tree.is_reachable(holder.index())) {
        for edge in graph.edge_range(holder.index().0) {
            let to = graph.referent(edge);
            let is_dominated =
                tree.immediate_dominator(NodeIndex(to)).is_some_and(|by| by.index() == holder.index());
            if is_dominated && of_nodes[to as usize] == NONE {
                of_nodes[to as usize] = place_of((holder.class_id(), graph.edge_name(edge)));
            }
        }
    }
    for node in graph.nodes() {
        let place = &mut of_nodes[node.index().get()];
        if *place == NONE
            && let Some(dominator) = tree.immediate_dominator(node.index())
        {
            *place = place_of((dominator.class_id(), None));
        }
    }
    for node in graph.nodes().skip(1).filter(|node| tree.is_reachable(node.index())) {
        let field = &mut fields[of_nodes[node.index().get()] as usize];
        field.count += 1;
        field.shallow_size += u128::from(node.shallow_size());
    }
    let fields_of = |node: u32| {
        let field = of_nodes[node as usize];
        (field != NONE).then_some(field as usize).into_iter()
    };
    let retained = retained_by_each(tree, fields.len(), fields_of, progress)?;
    fields.iter_mut().zip(retained).for_each(|(field, retained)| field.retained_size = retained);
    fields.sort_by_key(|field| core::cmp::Reverse(field.retained_size));
    Ok(fields)
}
