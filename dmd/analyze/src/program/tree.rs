//! Memory by several keys at once, as a tree: the crates, in each crate the types, of each type the sites.

use core::fmt::{self, Display};

use rustc_hash::FxHashMap;

use super::ProgramOptions;
use super::holder::{Holder, HolderKey, Holders};
use super::line::{bold, bytes, cut, dim, end};
use crate::amounts::{mark, number, percent};
use crate::records::{Analysis, RecordKind, Sums};

/// Memory by keys, each below the one before. Its `Display` gives a tree for each kind of record.
#[derive(Debug)]
pub struct HolderTree {
    keys: Vec<HolderKey>,
    sections: Vec<(RecordKind, bool, Node)>,
    rows: usize,
    width: usize,
    colour: bool,
}

#[derive(Debug, Default)]
struct Node {
    sums: Sums,
    children: FxHashMap<Holder, Node>,
}

impl Node {
    fn add(&mut self, holders: &[Holder], sums: Sums) {
        self.sums.add(sums);
        if let Some((first, rest)) = holders.split_first() {
            self.children.entry(first.clone()).or_default().add(rest, sums);
        }
    }
}

impl Analysis {
    /// The memory by `keys`, with at most `rows` rows below each other row. The analysis should have whole stacks,
    /// all records and, for [`HolderKey::Type`], types.
    pub fn holder_tree(&self, keys: &[HolderKey], rows: usize, options: &ProgramOptions) -> HolderTree {
        let holders = Holders::new(self, options);
        let room = options.width / 2;
        let section = |section: &crate::records::Section| {
            let mut root = Node::default();
            for record in &section.records {
                root.add(&holders.of(record, keys, room), record.sums);
            }
            (section.kind, section.estimated, root)
        };
        HolderTree {
            keys: keys.to_vec(),
            sections: self.sections.iter().filter(|section| section.kept > 0).map(section).collect(),
            rows,
            width: options.width,
            colour: options.colour,
        }
    }
}

impl Display for HolderTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = ProgramOptions { width: self.width, colour: self.colour, ..ProgramOptions::default() };
        let keys: Vec<&str> = self.keys.iter().map(|key| key.name()).collect();
        for (index, (kind, estimated, root)) in self.sections.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            let title = format!("{:>13}  {:>7}  {} by {}", "bytes", "share", kind.name(), keys.join(", "));
            writeln!(f, "{}", bold(&title, &options))?;
            self.node(f, root, root.sums.usable(), mark(*estimated), 0, &options)?;
        }
        Ok(())
    }
}

impl HolderTree {
    fn node(
        &self,
        f: &mut fmt::Formatter<'_>,
        node: &Node,
        whole: i128,
        mark: &str,
        depth: usize,
        options: &ProgramOptions,
    ) -> fmt::Result {
        let mut children: Vec<(&Holder, &Node)> = node.children.iter().collect();
        children.sort_by(|(a, x), (b, y)| {
            let bytes = |node: &Node| node.sums.usable().abs();
            bytes(y).cmp(&bytes(x)).then_with(|| (&a.name, &a.place).cmp(&(&b.name, &b.place)))
        });
        let indent = "  ".repeat(depth);
        let amounts = |sums: Sums| {
            format!("{:>13}  {:>7}", format!("{mark}{}", bytes(sums.usable())), percent(sums.usable(), whole))
        };
        let room = self.width.saturating_sub(AMOUNTS + indent.len());
        for (holder, child) in children.iter().take(self.rows) {
            let name = cut(&holder.name, room);
            let left = room.saturating_sub(name.chars().count() + "  ".len());
            let place = dim(&end(&holder.place, left), options);
            writeln!(f, "{}", format!("{}  {indent}{name}  {place}", amounts(child.sums)).trim_end())?;
            self.node(f, child, whole, mark, depth + 1, options)?;
        }
        if children.len() > self.rows {
            let mut rest = Sums::default();
            children[self.rows..].iter().for_each(|(_, child)| rest.add(child.sums));
            let more = format!("({} more)", number((children.len() - self.rows) as i128));
            writeln!(f, "{}  {indent}{}", amounts(rest), dim(&more, options))?;
        }
        Ok(())
    }
}

/// Columns before the name of a row.
const AMOUNTS: usize = 24;
