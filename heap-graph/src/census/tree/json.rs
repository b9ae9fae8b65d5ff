//! A tree as JSON, in the format that Firefox's front end uses.

use core::fmt::Write as _;

use super::{CensusTree, CensusTreeName};
use crate::json::list;

impl CensusTree {
    /// The tree as JSON in one line. The name of a frame is `{"frame": [source, line, column, function, null]}`.
    /// `reportLeafIndex` is a number, or `{"set": [...]}` for several merged leaves.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        // The indices of open nodes, each with the number of children written so far.
        let mut stack = vec![(0, 0)];
        self.open(0, &mut out);
        while let Some((place, written)) = stack.last_mut() {
            let node = &self.nodes[*place];
            let Some(child) = node.children.get(*written) else {
                out.push_str(match node.children.is_empty() {
                    true if node.is_pruned => ",\"children\":[]}",
                    true => "}",
                    false => "]}",
                });
                stack.pop();
                continue;
            };
            out.push_str(if *written == 0 { ",\"children\":[" } else { "," });
            *written += 1;
            self.open(*child, &mut out);
            stack.push((*child, 0));
        }
        out
    }

    /// Writes a node up to the start of its children.
    fn open(&self, place: usize, out: &mut String) {
        let node = &self.nodes[place];
        let _ = write!(out, "{{\"id\":{},\"name\":", node.id);
        match &node.name {
            None => out.push_str("null"),
            Some(CensusTreeName::Text(text)) => text.write_json(out),
            Some(CensusTreeName::Frame(frame)) => {
                out.push_str("{\"frame\":");
                frame.write_json(out);
                out.push('}');
            }
        }
        let (bytes, total_bytes) = (node.bytes, node.total_bytes);
        let _ = write!(out, ",\"bytes\":{bytes},\"totalBytes\":{total_bytes}");
        let _ = write!(out, ",\"count\":{},\"totalCount\":{}", node.count, node.total_count);
        if let Some(parent) = node.parent {
            let _ = write!(out, ",\"parent\":{}", self.nodes[parent].id);
        }
        match node.leaves.len() {
            0 => {}
            1 => {
                let _ = write!(out, ",\"reportLeafIndex\":{}", node.leaves[0]);
            }
            _ => {
                out.push_str(",\"reportLeafIndex\":{\"set\":");
                list(out, &node.leaves, |out, leaf| {
                    let _ = write!(out, "{leaf}");
                });
                out.push('}');
            }
        }
    }
}
