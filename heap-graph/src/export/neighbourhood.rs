//! A node and the nodes near it, for pictures: DOT for Graphviz, `GraphML` for graph editors.

use core::fmt::Write as _;

use indexmap::IndexSet;

use crate::graph::{Graph, GraphText, HeapNode, NodeIndex};

/// The limits of a neighbourhood.
#[derive(Clone, Debug)]
pub struct NeighbourhoodOptions {
    pub(crate) depth: usize,
    pub(crate) max_nodes: usize,
}

impl Default for NeighbourhoodOptions {
    fn default() -> Self {
        Self { depth: 2, max_nodes: 100 }
    }
}

impl NeighbourhoodOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the largest distance from the node, in edges of either direction. Default: 2.
    pub fn depth(mut self, depth: usize) -> Self {
        self.depth = depth;
        self
    }

    /// Sets the largest number of nodes; the nearest are kept. Default: 100.
    pub fn max_nodes(mut self, nodes: usize) -> Self {
        self.max_nodes = nodes;
        self
    }
}

/// A node, the nodes near it, and all edges between these nodes.
#[derive(Clone, Debug)]
pub struct Neighbourhood<'a> {
    graph: &'a Graph,
    nodes: IndexSet<u32>,
}

impl<'a> Neighbourhood<'a> {
    /// The neighbourhood of a node.
    pub fn new(graph: &'a Graph, node: NodeIndex, options: &NeighbourhoodOptions) -> Self {
        let mut nodes = IndexSet::from([node.0]);
        let mut known = 0;
        for _ in 0..options.depth {
            let last = known..nodes.len();
            if last.is_empty() || nodes.len() >= options.max_nodes {
                break;
            }
            known = nodes.len();
            let mut found: Vec<u32> =
                last.clone().flat_map(|place| graph.referents(nodes[place]).iter().copied()).collect();
            let is_last = |to: &u32| nodes.get_index_of(to).is_some_and(|place| last.contains(&place));
            found.extend(
                (0..graph.node_count() as u32).filter(|from| graph.referents(*from).iter().any(is_last)),
            );
            for node in found {
                if nodes.len() >= options.max_nodes {
                    break;
                }
                nodes.insert(node);
            }
        }
        Self { graph, nodes }
    }

    /// The nodes, starting with the given node.
    pub fn nodes(&self) -> impl Iterator<Item = HeapNode<'a>> {
        self.nodes.iter().map(|node| self.graph.node(NodeIndex(*node)))
    }

    fn edges(&self) -> impl Iterator<Item = (HeapNode<'a>, HeapNode<'a>, Option<GraphText<'a>>)> {
        self.nodes().flat_map(|node| {
            node.edges()
                .filter(|edge| self.nodes.contains(&edge.referent.index().0))
                .map(move |edge| (node, edge.referent, edge.name))
        })
    }

    /// The neighbourhood as a directed graph in DOT.
    pub fn to_dot(&self) -> String {
        let mut out = String::from("digraph heap {\n  node [shape=box];\n");
        for (place, node) in self.nodes().enumerate() {
            let title = quoted(&format!("{}\n{} bytes\n{}", node.title(), node.shallow_size(), node.id()));
            let style = if place == 0 { ", style=bold" } else { "" };
            let _ = writeln!(out, "  n{} [label={title}{style}];", node.index().get());
        }
        for (from, to, name) in self.edges() {
            let _ = write!(out, "  n{} -> n{}", from.index().get(), to.index().get());
            if let Some(name) = name {
                let _ = write!(out, " [label={}]", quoted(&name.to_string()));
            }
            out.push_str(";\n");
        }
        out.push_str("}\n");
        out
    }

    /// The neighbourhood as a directed graph in `GraphML`.
    pub fn to_graphml(&self) -> String {
        let mut out = String::from(concat!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n",
            "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n",
            "  <key id=\"title\" for=\"node\" attr.name=\"title\" attr.type=\"string\"/>\n",
            "  <key id=\"address\" for=\"node\" attr.name=\"id\" attr.type=\"string\"/>\n",
            "  <key id=\"size\" for=\"node\" attr.name=\"size\" attr.type=\"long\"/>\n",
            "  <key id=\"name\" for=\"edge\" attr.name=\"name\" attr.type=\"string\"/>\n",
            "  <graph id=\"heap\" edgedefault=\"directed\">\n",
        ));
        for node in self.nodes() {
            let (title, id, size) = (xml(&node.title().to_string()), node.id(), node.shallow_size());
            let _ = writeln!(
                out,
                "    <node id=\"n{}\"><data key=\"title\">{title}</data><data key=\"address\">{id}</data><data key=\"size\">{size}</data></node>",
                node.index().get()
            );
        }
        for (from, to, name) in self.edges() {
            let (from, to) = (from.index().get(), to.index().get());
            let name = name.map_or(String::new(), |name| {
                format!("<data key=\"name\">{}</data>", xml(&name.to_string()))
            });
            let _ = writeln!(out, "    <edge source=\"n{from}\" target=\"n{to}\">{name}</edge>");
        }
        out.push_str("  </graph>\n</graphml>\n");
        out
    }
}

/// A text in double quotes, with the escapes of DOT.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A text with the escapes of XML. U+FFFD replaces control characters, U+FFFE and U+FFFF, since XML does not allow most
/// of them.
fn xml(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                out.push(char::REPLACEMENT_CHARACTER);
            }
            c => out.push(c),
        }
    }
    out
}
