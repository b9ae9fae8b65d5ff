//! Turns a tree into paths of reports.

use memory_report::path_segment;
use memory_report::tree::ITSELF;

use super::{SizeNode, SizeTree};

impl SizeTree {
    /// Calls `emit` with path, node and usable bytes. The bytes add up to the total, and no path is below another
    /// path. A node `depth` levels below the root includes all nodes below it.
    pub(crate) fn for_each_path(
        &self,
        root: &str,
        depth: usize,
        mut emit: impl FnMut(&str, SizeNode<'_>, usize),
    ) {
        let mut path = root.to_owned();
        // The lengths of the ancestors' paths.
        let mut lengths = Vec::new();
        let mut id = 0;
        while id < self.nodes.len() {
            let node = SizeNode { tree: self, id };
            lengths.truncate(node.depth());
            if let Some(length) = lengths.last() {
                path.truncate(*length);
                path.push('/');
                path.push_str(&path_segment(node.name()));
            }
            lengths.push(path.len());
            if node.is_leaf() || node.depth() >= depth {
                emit(&path, node, node.total().usable);
                id = node.end();
                continue;
            }
            let own = node.own().usable;
            if own > 0 {
                path.push('/');
                path.push_str(ITSELF);
                emit(&path, node, own);
            }
            id += 1;
        }
    }
}
