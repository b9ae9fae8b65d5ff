//! Writes a tree as folded stacks.

use core::fmt::{self, Write as _};

use super::{SizeNode, SizeTree};

/// The result of [`SizeTree::folded`]; its [`Display`](fmt::Display) writes the text.
///
/// A `;` inside a name becomes `,` and a control character becomes a blank, since `;` and line breaks are separators in
/// this format.
#[derive(Clone, Copy, Debug)]
pub struct FoldedStacks<'a> {
    pub(super) tree: &'a SizeTree,
    pub(super) root: &'a str,
}

impl fmt::Display for FoldedStacks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut stack: Vec<SizeNode<'_>> = Vec::new();
        for node in self.tree.nodes() {
            stack.truncate(node.depth());
            stack.push(node);
            if node.own().usable == 0 {
                continue;
            }
            for (level, node) in stack.iter().enumerate() {
                if level == 0 {
                    write_name(f, self.root)?;
                } else {
                    f.write_char(';')?;
                    write_name(f, node.name())?;
                }
            }
            writeln!(f, " {}", node.own().usable)?;
        }
        Ok(())
    }
}

fn write_name(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    name.chars().try_for_each(|character| {
        f.write_char(match character {
            ';' => ',',
            _ if character.is_control() => ' ',
            _ => character,
        })
    })
}
