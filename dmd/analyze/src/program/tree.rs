//! Memory by several keys at once, as a tree: for example crates, in each crate the types, in each type the sites.

use core::fmt::{self, Display};

use super::ProgramOptions;
use super::holder::{BlockHolder, HolderFinder, HolderKey, names};
use super::line::{bold, bytes, dim, tails};
use super::node::{HolderNode, sum};
use super::summary::{AMOUNTS, for_names};
use crate::print::{mark, number, percent};
use crate::records::{Analysis, KindSection, RecordKind};

/// The default maximum number of rows directly below a row.
const ROWS: usize = 10;

/// A row with less than the whole divided by this number counts as small.
const SMALL: u128 = 1000;

/// Memory grouped by several keys, one level for each key. Its `Display` writes a tree for each kind of record.
#[derive(Debug)]
pub struct HolderTree {
    keys: Vec<HolderKey>,
    sections: Vec<(RecordKind, bool, HolderNode)>,
    rows: Option<usize>,
    width: usize,
    colour: bool,
    verbose: bool,
}

impl Analysis {
    /// Groups the memory by `keys`, one level for each key, with at most `rows` rows directly below a row. The analysis
    /// should have whole stacks, all records and, for [`HolderKey::Type`], types.
    ///
    /// If `rows` is `None`, at most ten rows are shown directly below a row. Rows with less than a thousandth of the
    /// whole are left out, unless the view is [verbose](ProgramOptions::verbose). One row has the sum of all rows that
    /// are left out.
    pub fn holder_tree(
        &self,
        keys: &[HolderKey],
        rows: Option<usize>,
        options: &ProgramOptions,
    ) -> HolderTree {
        let holders = HolderFinder::new(self, options);
        let section = |section: &KindSection| {
            let mut root = HolderNode::default();
            for record in &section.records {
                root.add(&holders.find(record, keys), record.sums);
            }
            (section.kind, section.estimated, root)
        };
        HolderTree {
            keys: keys.to_vec(),
            sections: self.sections.iter().filter(|section| section.kept > 0).map(section).collect(),
            rows,
            width: options.width,
            colour: options.colour,
            verbose: options.verbose,
        }
    }
}

impl Display for HolderTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = ProgramOptions::new().width(self.width).colour(self.colour).verbose(self.verbose);
        let keys: Vec<&str> = self.keys.iter().map(|key| key.name()).collect();
        for (index, (kind, estimated, root)) in self.sections.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            let title = format!("{:>13}  {:>7}  {} by {}", "bytes", "share", kind.name(), keys.join(", "));
            writeln!(f, "{}", bold(&title, &options))?;
            self.node(f, root, root, mark(*estimated), 0, &options)?;
        }
        Ok(())
    }
}

impl HolderTree {
    fn node(
        &self,
        f: &mut fmt::Formatter<'_>,
        node: &HolderNode,
        root: &HolderNode,
        mark: &str,
        depth: usize,
        options: &ProgramOptions,
    ) -> fmt::Result {
        // The last key has no rows below.
        let Some(key) = self.keys.get(depth) else { return Ok(()) };
        let children = node.children();
        let (shown, further) = children.split_at(self.shown(&children, root, depth));
        let indent = "  ".repeat(depth);
        let amounts = |bytes_of: i128| {
            let amount = format!("{mark}{}", bytes(bytes_of));
            format!("{amount:>13}  {:>7}  {indent}", percent(bytes_of, root.sums.usable()))
        };
        let before = AMOUNTS + indent.len();
        let room = self.width.saturating_sub(before);
        let holders: Vec<&BlockHolder> = shown.iter().map(|(holder, _)| *holder).collect();
        let names = names(&holders, for_names(*key, room), room, options);
        let places: Vec<String> = shown.iter().map(|(_, child)| child.place().into_owned()).collect();
        let tails = tails(&names, &places, room, before + 4, options);
        for (((_, child), name), tail) in shown.iter().zip(&names).zip(&tails) {
            writeln!(f, "{}{name}{tail}", amounts(child.sums.usable()))?;
            self.node(f, child, root, mark, depth + 1, options)?;
        }
        if !further.is_empty() {
            let more = format!("({} more)", number(further.len() as i128));
            writeln!(f, "{}{}", amounts(sum(further).usable()), dim(&more, options))?;
        }
        Ok(())
    }

    /// The number of rows to show for some children. The children are sorted descending by size.
    fn shown(&self, children: &[(&BlockHolder, &HolderNode)], root: &HolderNode, depth: usize) -> usize {
        let most = children.len().min(self.rows.unwrap_or(ROWS));
        if self.rows.is_some() || self.verbose {
            return most;
        }
        let is_small = |node: &HolderNode| node.bytes().saturating_mul(SMALL) < root.bytes();
        let large = children.iter().take_while(|(_, child)| !is_small(child)).count();
        // If all holders are small, show rows anyway.
        if large == 0 && depth == 0 { most } else { most.min(large) }
    }
}
