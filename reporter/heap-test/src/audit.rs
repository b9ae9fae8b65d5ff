//! Compares what a value states as its size with its real memory.

use core::any::type_name;
use core::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use memory_reporter::MallocSizeOf;
use memory_reporter::measure::size_tree::SizeNode;
use memory_reporter::measure::{SizeTree, computed_size_tree};
use memory_reporter::scopes::Scope;

use crate::figure::grouped;

/// The sizes of a value: stated by the value, walked, and allocated. All are requested bytes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SizeAudit {
    /// The type of the value.
    pub type_name: &'static str,
    /// The result of the value's own method.
    pub stated: i128,
    /// The bytes of the value itself, without its heap.
    pub inline: i128,
    /// The heap of the value by a walk: each shared block counts once.
    pub walked: i128,
    /// The live blocks of the scope that made the value. `None` if the value was made before.
    pub allocated: Option<i128>,
    /// The number of blocks that the value's own method allocated.
    pub allocations_of_size: u64,
    /// The parts that can explain the difference. Several headers are alternatives.
    pub parts: Vec<Audit>,
}

/// A part of a value that can explain a wrong size.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Audit {
    /// The size does not contain this field.
    Missing {
        /// The path of the field.
        field: String,
        /// The bytes of the field's heap.
        bytes: i128,
    },
    /// The size contains a shared field once for each pointer to it.
    CountedAgain {
        /// The path of the field.
        field: String,
        /// How many times it is counted too often.
        times: i128,
        /// The bytes of the field's heap.
        bytes: i128,
    },
    /// The size contains headers that are already part of the value or of a block.
    CountedInline {
        /// The path of the fields.
        field: String,
        /// The number of headers.
        count: i128,
        /// The bytes of one header.
        bytes: i128,
    },
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { field, bytes } => write!(f, "missing: `{field}` ({} bytes)", grouped(*bytes)),
            Self::CountedAgain { field, times, bytes } => write!(
                f,
                "counted {} times: `{field}` ({} bytes; one block for all its owners)",
                times + 1,
                grouped(*bytes)
            ),
            Self::CountedInline { field, count, bytes } => {
                write!(f, "counted although inline: {} x {bytes} bytes at `{field}`", grouped(*count))
            }
        }
    }
}

impl SizeAudit {
    /// Makes a value in a scope, and compares its sizes.
    ///
    /// # Errors
    ///
    /// Returns an error if the figures of the scope are not exact, or if `size` panics.
    pub fn measure_new<T: MallocSizeOf>(
        make: impl FnOnce() -> T,
        size: impl FnOnce(&T) -> i128,
    ) -> Result<Self, String> {
        let (value, scope) = Scope::measure(make);
        let allocated = scope.figures().map_err(|error| error.to_string())?.retained_bytes;
        Self::compare(&value, size, Some(allocated.into()))
    }

    /// Compares the sizes of a value that exists.
    ///
    /// # Errors
    ///
    /// Returns an error if `size` panics.
    pub fn measure<T: MallocSizeOf>(value: &T, size: impl FnOnce(&T) -> i128) -> Result<Self, String> {
        Self::compare(value, size, None)
    }

    fn compare<T: MallocSizeOf>(
        value: &T,
        size: impl FnOnce(&T) -> i128,
        allocated: Option<i128>,
    ) -> Result<Self, String> {
        let scope = Scope::named("size");
        let stated = catch_unwind(AssertUnwindSafe(|| scope.run(|| size(value)))).map_err(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text =
                text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a value that is no text");
            format!("the size of `{}` panicked: {text}", type_name::<T>())
        })?;
        let tree = computed_size_tree(value);
        let mut audit = Self {
            type_name: type_name::<T>(),
            stated,
            inline: size_of::<T>() as i128,
            walked: tree.total().usable as i128,
            allocated,
            allocations_of_size: scope.figures().map_or(0, |figures| figures.allocations),
            parts: Vec::new(),
        };
        audit.parts = explain(&tree, audit.inline, audit.difference());
        Ok(audit)
    }

    /// The stated size minus the real size: with or without the value itself, whichever is nearer.
    pub fn difference(&self) -> i128 {
        self.sizes()
            .map(|size| self.stated.saturating_sub(size))
            .min_by_key(|over| over.unsigned_abs())
            .unwrap_or(0)
    }

    /// The sizes that a method may state. The walk does not see ignored fields, and the scope does not contain blocks
    /// that are older than the value. So the walk is right only if it sees all allocated bytes.
    fn sizes(&self) -> impl Iterator<Item = i128> {
        let walked = self.hidden().is_none_or(|hidden| hidden <= 0).then_some(self.walked);
        let heaps = [walked, self.allocated].into_iter().flatten();
        let inline = self.inline;
        heaps.flat_map(move |heap| [heap, heap + inline])
    }

    /// The allocated bytes that the walk does not see; `None` if the allocated bytes are not known.
    fn hidden(&self) -> Option<i128> {
        self.allocated.map(|allocated| allocated - self.walked)
    }

    /// Whether the stated size is right, up to this share of the real size in percent.
    pub fn is_within(&self, percent: u32) -> bool {
        let limit = (self.walked.max(self.allocated.unwrap_or(0)) + self.inline) * i128::from(percent) / 100;
        self.stated >= 0 && self.difference().unsigned_abs() <= limit.unsigned_abs()
    }
}

impl fmt::Display for SizeAudit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { type_name, stated, inline, walked, .. } = self;
        writeln!(f, "the size of `{type_name}` is not its memory")?;
        writeln!(f, "  stated:    {} bytes", grouped(*stated))?;
        writeln!(
            f,
            "  walked:    {} bytes of heap, and {} bytes of the value itself",
            grouped(*walked),
            grouped(*inline)
        )?;
        match self.allocated {
            Some(allocated) => writeln!(f, "  allocated: {} bytes of heap", grouped(allocated))?,
            None => writeln!(f, "  allocated: not known; write `audit!(value = make(), value.size())`")?,
        }
        let difference = self.difference();
        let real = (self.stated - difference).max(1);
        let percent = difference.saturating_mul(100) / real;
        let sign = if difference > 0 { "+" } else { "" };
        writeln!(f, "  error:     {sign}{} bytes ({sign}{percent} %)", grouped(difference))?;
        if self.stated > isize::MAX as i128 || self.stated < 0 {
            writeln!(f, "  the stated size is not in the address space: a sum may have overflowed")?;
        }
        for part in &self.parts {
            writeln!(f, "  {part}")?;
        }
        if let Some(hidden) = self.hidden().filter(|hidden| *hidden > 0) {
            writeln!(
                f,
                "  the walk does not see {} allocated bytes: an ignored field, or memory outside of the value",
                grouped(hidden)
            )?;
        }
        if self.allocations_of_size > 0 {
            writeln!(f, "  the method itself allocated {} blocks", grouped(self.allocations_of_size.into()))?;
        }
        Ok(())
    }
}

/// Implements `audit!`.
#[doc(hidden)]
#[track_caller]
pub fn check(audit: Result<SizeAudit, String>, percent: u32) {
    match audit {
        Ok(audit) if audit.is_within(percent) => {}
        Ok(audit) => panic!("{audit}"),
        Err(error) => panic!("{error}"),
    }
}

/// The parts whose bytes equal the difference: one part, otherwise two fields.
fn explain(tree: &SizeTree, inline: i128, difference: i128) -> Vec<Audit> {
    // The size without the value itself may be meant.
    let differences = [difference, difference - inline, difference + inline];
    let parts = named_parts(tree);
    differences.into_iter().find_map(|difference| explain_one(&parts, difference)).unwrap_or_default()
}

fn explain_one(parts: &[(String, SizeNode<'_>)], difference: i128) -> Option<Vec<Audit>> {
    let heap = |node: &SizeNode<'_>| node.total().usable as i128;
    if difference == 0 {
        return None;
    }
    if difference < 0 {
        let missing = |(field, node): &(String, SizeNode<'_>)| Audit::Missing {
            field: field.clone(),
            bytes: heap(node),
        };
        if let Some(part) = parts.iter().find(|(_, node)| heap(node) == -difference) {
            return Some(vec![missing(part)]);
        }
        // The blocks of a field, without what they contain.
        let own = parts.iter().find(|(_, node)| node.own().usable as i128 == -difference);
        if let Some((field, node)) = own {
            let field = format!("{field} (its own block)");
            return Some(vec![Audit::Missing { field, bytes: node.own().usable as i128 }]);
        }
        let fields: Vec<_> = parts.iter().filter(|(_, node)| node.depth() == 1).collect();
        return fields.iter().enumerate().find_map(|(index, first)| {
            let second =
                fields[index + 1..].iter().find(|second| heap(&first.1) + heap(&second.1) == -difference)?;
            Some(vec![missing(first), missing(second)])
        });
    }
    let again = parts.iter().filter(|(_, node)| heap(node) > 0 && difference % heap(node) == 0);
    // A shared part explains more than any other part.
    let is_shared =
        |node: &SizeNode<'_>| ["sync::Arc<", "rc::Rc<"].iter().any(|name| node.type_name().contains(name));
    let again = again.max_by_key(|(_, node)| (is_shared(node), heap(node) == difference, heap(node)));
    // Several fields may explain the same number of bytes.
    let headers: Vec<Audit> = parts
        .iter()
        .filter_map(|(field, node)| {
            let bytes = header(node.type_name())?;
            let count = difference / bytes;
            let is_all = count == i128::from(node.count()) || count == 1;
            (difference % bytes == 0 && is_all).then(|| Audit::CountedInline {
                field: field.clone(),
                count,
                bytes,
            })
        })
        .take(3)
        .collect();
    let again = again.map(|(field, node)| {
        (
            is_shared(node),
            Audit::CountedAgain { field: field.clone(), times: difference / heap(node), bytes: heap(node) },
        )
    });
    match again {
        Some((true, again)) => Some(vec![again]),
        _ if !headers.is_empty() => Some(headers),
        again => again.map(|(_, again)| vec![again]),
    }
}

/// The bytes of a container without its heap.
fn header(type_name: &str) -> Option<i128> {
    let name = type_name.split('<').next().unwrap_or_default();
    let bytes = match name.rsplit("::").next().unwrap_or_default() {
        "Vec" | "String" => size_of::<String>(),
        "VecDeque" => size_of::<std::collections::VecDeque<u8>>(),
        "BTreeMap" | "BTreeSet" => size_of::<std::collections::BTreeSet<u8>>(),
        "HashMap" | "HashSet" => size_of::<std::collections::HashSet<u8>>(),
        "Box" | "Rc" | "Arc" => size_of::<usize>(),
        _ => return None,
    };
    Some(bytes as i128)
}

/// All parts below the root with their paths.
fn named_parts(tree: &SizeTree) -> Vec<(String, SizeNode<'_>)> {
    let mut parts = Vec::new();
    let mut open: Vec<(String, SizeNode<'_>)> =
        tree.root().children().map(|node| (node.name().to_owned(), node)).collect();
    open.reverse();
    while let Some((path, node)) = open.pop() {
        open.extend(node.children().map(|child| (format!("{path}/{}", child.name()), child)));
        parts.push((path, node));
    }
    parts
}
