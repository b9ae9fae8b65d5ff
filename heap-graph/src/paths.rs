//! Paths from one node to other nodes: they show why a node is alive.

mod k_shortest;
mod path_tree;

pub use k_shortest::k_shortest_paths;
pub use path_tree::PathTree;

use core::fmt::Write as _;

use hashbrown::{HashMap, HashSet};
use indexmap::{IndexMap, IndexSet};

use crate::graph::{Graph, GraphText, GraphTextId, NodeId, NodeIndex};
use crate::json::list;
use crate::progress::{AnalysisProgress, CancelledError, StepCounter};
use crate::walk::BreadthFirst;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathPart<'a> {
    /// The node at which the step starts.
    pub predecessor: NodeId,
    /// The name of the step's edge; `None` if it has no name.
    pub edge: Option<GraphText<'a>>,
}

/// The steps of a path, from its start. The last step's edge leads to the target.
pub type GraphPath<'a> = Vec<PathPart<'a>>;

/// Paths to some targets.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ShortestPaths<'a> {
    /// The node at which all paths start.
    pub start: NodeId,
    /// The number of paths requested for each target.
    pub max: usize,
    /// Each different target in the order of the request, with the paths to it. The list is empty if the start does
    /// not reach the target.
    pub paths: Vec<(NodeId, Vec<GraphPath<'a>>)>,
}

/// The edge that leads to a node: its source, and its name.
type BackEdge = (u32, Option<GraphTextId>);

/// Up to `max` paths to each target, as Firefox defines them.
///
/// One breadth-first walk uses the first `max` edges that arrive at a target. Each of these edges results in a path:
/// the shortest path to the source of the edge, and then the edge. So parallel edges result in equal paths, and a later
/// path may lead through the target itself. [`k_shortest_paths`] finds the paths that are really the shortest.
pub fn shortest_paths<'a>(
    graph: &'a Graph,
    start: NodeIndex,
    targets: &[NodeIndex],
    max: usize,
) -> ShortestPaths<'a> {
    shortest_paths_watched(graph, start, targets, max, &AnalysisProgress::new())
        .expect("only the caller's progress could cancel the analysis")
}

/// [`shortest_paths`] with an [`AnalysisProgress`], which shows the progress and can cancel the analysis.
///
/// # Errors
///
/// Returns a [`CancelledError`] if the analysis was cancelled.
pub fn shortest_paths_watched<'a>(
    graph: &'a Graph,
    start: NodeIndex,
    targets: &[NodeIndex],
    max: usize,
    progress: &AnalysisProgress,
) -> Result<ShortestPaths<'a>, CancelledError> {
    let mut found: HashMap<u32, Vec<BackEdge>> = HashMap::new();
    let mut order = Vec::new();
    for target in targets {
        found.entry(target.0).or_insert_with(|| {
            order.push(target.0);
            Vec::new()
        });
    }
    let mut missing = if max == 0 { 0 } else { order.len() };
    let mut is_target = vec![0_u64; graph.node_count().div_ceil(64)];
    for target in &order {
        is_target[*target as usize / 64] |= 1 << (target % 64);
    }
    // For each node: the first edge that arrives there, and its source.
    let mut first: Vec<(u32, u32)> = vec![(0, 0); graph.node_count()];
    let mut walk = BreadthFirst::from(graph, start.0);
    let mut steps = StepCounter::new(progress, graph.node_count());
    'walk: while let Some(from) = walk.next() {
        steps.step()?;
        if missing == 0 {
            break;
        }
        for edge in graph.edge_range(from) {
            let to = graph.referent(edge);
            if walk.arrive(to) {
                first[to as usize] = (edge as u32, from);
            }
            if is_target[to as usize / 64] & 1 << (to % 64) == 0 {
                continue;
            }
            let Some(backs) = found.get_mut(&to) else { continue };
            if backs.len() < max {
                backs.push((from, graph.edge_name(edge)));
                if backs.len() == max {
                    missing -= 1;
                    if missing == 0 {
                        break 'walk;
                    }
                }
            }
        }
    }
    let part = |(from, name): BackEdge| PathPart {
        predecessor: NodeId(graph.ids()[from as usize]),
        edge: name.map(|name| graph.text(name)),
    };
    let mut backwards = Vec::new();
    let mut complete = |back: BackEdge| {
        let before = |(from, _): &BackEdge| {
            let (edge, before) = first[*from as usize];
            (*from != start.0).then(|| (before, graph.edge_name(edge as usize)))
        };
        backwards.clear();
        backwards.extend(core::iter::successors(Some(back), before));
        backwards.iter().rev().copied().map(part).collect()
    };
    let paths = order.into_iter().map(|target| {
        let backs = found.remove(&target).unwrap_or_default();
        (NodeId(graph.ids()[target as usize]), backs.into_iter().map(&mut complete).collect())
    });
    Ok(ShortestPaths { start: graph.node(start).id(), max, paths: paths.collect() })
}

/// The paths to one target as a graph for display. Each node and each edge occurs once.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MergedPaths<'a> {
    /// The nodes, with the target first.
    pub nodes: Vec<NodeId>,
    /// The edges: source, target, name.
    pub edges: Vec<(NodeId, NodeId, Option<GraphText<'a>>)>,
}

impl<'a> MergedPaths<'a> {
    /// Merges paths. Leaves out paths that visit a node twice. `None` if there are no paths.
    pub fn new(target: NodeId, paths: &'a [GraphPath<'_>]) -> Option<Self> {
        if paths.is_empty() {
            return None;
        }
        let (mut nodes, mut edges) = (IndexSet::from([target]), IndexSet::new());
        for path in paths {
            let mut seen: HashSet<_> = [target].into_iter().collect();
            if !path.iter().all(|part| seen.insert(part.predecessor)) {
                continue;
            }
            let targets = path.iter().skip(1).map(|part| part.predecessor).chain([target]);
            for (part, to) in path.iter().zip(targets) {
                nodes.insert(part.predecessor);
                edges.insert((part.predecessor, to, part.edge.as_ref().map(GraphText::reborrow)));
            }
        }
        // Firefox groups edges by their source, then by their target.
        let mut groups = IndexMap::<_, IndexMap<_, Vec<_>>>::new();
        for (from, to, name) in edges {
            groups.entry(from).or_default().entry(to).or_default().push(name);
        }
        let edges = groups.into_iter().flat_map(|(from, group)| {
            group.into_iter().flat_map(move |(to, names)| names.into_iter().map(move |name| (from, to, name)))
        });
        let merged = Self { nodes: nodes.into_iter().collect(), edges: edges.collect() };
        Some(merged)
    }

    fn write_json(&self, out: &mut String) {
        out.push_str("{\"nodes\":");
        list(out, &self.nodes, |out, id| {
            let _ = write!(out, "{id}");
        });
        out.push_str(",\"edges\":");
        list(out, &self.edges, |out, (from, to, name)| {
            let _ = write!(out, "{{\"from\":{from},\"to\":{to},\"name\":");
            write_name(out, name.as_ref());
            out.push('}');
        });
        out.push('}');
    }
}

impl ShortestPaths<'_> {
    /// An owned copy of the paths, independent of the graph.
    pub fn into_owned(self) -> ShortestPaths<'static> {
        let part = |PathPart { predecessor, edge }: PathPart<'_>| PathPart {
            predecessor,
            edge: edge.map(GraphText::into_owned),
        };
        let owned = |path: GraphPath<'_>| path.into_iter().map(part).collect();
        let paths =
            self.paths.into_iter().map(|(target, paths)| (target, paths.into_iter().map(owned).collect()));
        ShortestPaths { start: self.start, max: self.max, paths: paths.collect() }
    }

    /// The paths as JSON in one line. `paths` contains `[target, paths]`, and `deduplicated` contains the merged
    /// paths.
    pub fn to_json(&self) -> String {
        let mut out = format!("{{\"start\":{},\"targets\":", self.start);
        list(&mut out, &self.paths, |out, (target, _)| {
            let _ = write!(out, "{target}");
        });
        let _ = write!(out, ",\"max\":{},\"paths\":", self.max);
        list(&mut out, &self.paths, |out, (target, paths)| {
            let _ = write!(out, "[{target},");
            list(out, paths, |out, path| {
                list(out, path, |out, part| {
                    let _ = write!(out, "{{\"predecessor\":{},\"edge\":", part.predecessor);
                    write_name(out, part.edge.as_ref());
                    out.push('}');
                });
            });
            out.push(']');
        });
        out.push_str(",\"deduplicated\":");
        list(&mut out, &self.paths, |out, (target, paths)| match MergedPaths::new(*target, paths) {
            Some(merged) => merged.write_json(out),
            None => out.push_str("null"),
        });
        out.push('}');
        out
    }
}

fn write_name(out: &mut String, name: Option<&GraphText<'_>>) {
    match name {
        Some(name) => name.write_json(out),
        None => out.push_str("null"),
    }
}
