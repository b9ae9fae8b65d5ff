//! Finds a node or an amount in a process's trees.

use super::node::TreeNode;
use super::process::ProcessTrees;

impl<'a> ProcessTrees<'a> {
    /// The roots of the trees, in no particular order.
    pub fn trees(&self) -> impl Iterator<Item = TreeNode<'_, 'a>> {
        self.trees.iter().map(|&id| TreeNode { process: self, id })
    }

    /// The reports whose path has no `/`, in no particular order.
    pub fn lines(&self) -> impl Iterator<Item = TreeNode<'_, 'a>> {
        self.lines.iter().map(|&id| TreeNode { process: self, id })
    }

    /// The report whose path is `name`, without `/`; `None` if there is none.
    pub fn line(&self, name: &str) -> Option<TreeNode<'_, 'a>> {
        self.lines().find(|line| line.path() == name)
    }

    /// The node at `path`, written as in the reports. A path that ends inside a merged chain returns the whole chain,
    /// since its amount is the same. If a tree and a line have the same name, returns the tree.
    pub fn node(&self, path: &str) -> Option<TreeNode<'_, 'a>> {
        let root = path.split('/').next().unwrap_or(path);
        let Some(mut node) = self.trees().find(|tree| tree.path() == root) else {
            return self.line(path);
        };
        loop {
            let at = node.path().len();
            if path.len() <= at {
                return Some(node);
            }
            let rest = &path[at + 1..];
            node = node.children().find(|child| leads_to(*child, rest))?;
            if node.is_itself() {
                return Some(node);
            }
        }
    }

    /// The amount at `path`, in the units of its tree. `path` is a leaf, an inner node (the sum of its children),
    /// `explicit/heap-unclassified`, or a line.
    pub fn amount(&self, path: &str) -> Option<i128> {
        self.node(path).map(TreeNode::amount)
    }
}

/// Whether the remaining path ends at this child, inside it (a merged chain), or below it.
fn leads_to(child: TreeNode<'_, '_>, rest: &str) -> bool {
    let name = child.name();
    if child.is_itself() {
        return rest == name;
    }
    let (short, long) = if rest.len() <= name.len() { (rest, name) } else { (name, rest) };
    long.starts_with(short) && (long.len() == short.len() || long.as_bytes()[short.len()] == b'/')
}
