//! V8's `.heapsnapshot`, which Chrome's developer tools and memlab read.

use std::io::{self, BufWriter, Write};

use hashbrown::HashSet;

use crate::graph::{CoarseType, Graph, GraphTextId, NodeIndex};

const META: &str = concat!(
    r#"{"snapshot":{"meta":{"#,
    r#""node_fields":["type","name","id","self_size","edge_count","trace_node_id","detachedness"],"#,
    r#""node_types":[["hidden","array","string","object","code","closure","regexp","number","native","#,
    r#""synthetic","concatenated string","sliced string","symbol","bigint","object shape"],"#,
    r#""string","number","number","number","number","number"],"#,
    r#""edge_fields":["type","name_or_index","to_node"],"#,
    r#""edge_types":[["context","element","property","internal","hidden","shortcut","weak"],"#,
    r#""string_or_number","node"],"#,
    r#""trace_function_info_fields":["function_id","name","script_name","script_id","line","column"],"#,
    r#""trace_node_fields":["id","function_info_index","count","size","children"],"#,
    r#""sample_fields":["timestamp_us","last_assigned_id"],"#,
    r#""location_fields":["object_index","script_id","line","column"]},"#,
);

/// The number of fields of a node in the format.
const NODE_FIELDS: usize = 7;

/// Writes a graph as V8's `.heapsnapshot`.
///
/// The format has ids and sizes of 32 bits. The ids are 1, 3, 5 and so on in the order of the graph. A size of 4 GiB
/// or more becomes 4,294,967,295. The file contains no allocation stacks. If several edges lead from the root to one
/// node, the file contains only the first of these edges: Chrome's developer tools reject snapshots with many parallel
/// edges.
///
/// # Errors
///
/// Returns an error if `file` cannot be written, or if the graph has more nodes than the format can number (about 600
/// million).
pub fn write_v8<W: Write>(graph: &Graph, file: W) -> io::Result<()> {
    if graph.node_count() * NODE_FIELDS > u32::MAX as usize {
        return Err(io::Error::other("too many nodes for a .heapsnapshot; the limit is about 600 million"));
    }
    let mut out = BufWriter::with_capacity(1 << 16, file);
    out.write_all(META.as_bytes())?;
    let mut known = HashSet::new();
    let of_root = graph.edge_range(NodeIndex::ROOT.0);
    let root_edges: Vec<usize> = of_root.clone().filter(|edge| known.insert(graph.referent(*edge))).collect();
    let (nodes, edges) = (graph.node_count(), graph.edge_count() - of_root.len() + root_edges.len());
    write!(out, "\"node_count\":{nodes},\"edge_count\":{edges},\"trace_function_count\":0}},\n\"nodes\":[")?;
    // Two texts of this function precede the graph's texts.
    let text = |id: GraphTextId| id.index() + 2;
    for node in graph.nodes() {
        let place = node.index().get();
        let (kind, name) = match node.coarse_type() {
            _ if node.index() == NodeIndex::ROOT => (9, 0),
            CoarseType::Object => (3, text(node.title_id())),
            CoarseType::String => (2, text(node.title_id())),
            CoarseType::Script => (4, text(node.title_id())),
            CoarseType::Other | CoarseType::DomNode => (8, text(node.title_id())),
        };
        let size = u32::try_from(node.shallow_size()).unwrap_or(u32::MAX);
        let comma = if place == 0 { "" } else { ",\n" };
        let edges = match node.index() {
            NodeIndex::ROOT => root_edges.len(),
            index => graph.referents(index.0).len(),
        };
        write!(out, "{comma}{kind},{name},{},{size},{edges},0,0", place * 2 + 1)?;
    }
    out.write_all(b"],\n\"edges\":[")?;
    // The root and its edges are first.
    for (place, edge) in root_edges.into_iter().chain(of_root.end..graph.edge_count()).enumerate() {
        let comma = if place == 0 { "" } else { ",\n" };
        // An edge with a name is a property; an edge without a name is internal.
        let (kind, name) = graph.edge_name(edge).map_or((3, 1), |name| (2, text(name)));
        write!(out, "{comma}{kind},{name},{}", graph.referent(edge) as usize * NODE_FIELDS)?;
    }
    out.write_all(b"],\n")?;
    out.write_all(b"\"trace_function_infos\":[],\"trace_tree\":[],\"samples\":[],\"locations\":[],\n")?;
    out.write_all(b"\"strings\":[\"\",\n\"(no name)\"")?;
    let mut json = String::new();
    for text in graph.texts().iter() {
        json.clear();
        json.push_str(",\n");
        text.write_json(&mut json);
        out.write_all(json.as_bytes())?;
    }
    out.write_all(b"]}\n")?;
    out.flush()
}
