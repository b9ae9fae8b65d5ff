//! Reports of a census: counts by the keys of the breakdown, in Firefox's order.
//!
//! Counts and sums are signed 128-bit numbers, so that neither sums nor differences overflow.

pub(crate) mod json;

use core::fmt;
use core::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::graph::GraphText;

/// The result of a census, with the same structure as its breakdown.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CensusReport {
    /// The result of a count.
    Count(CensusCount),
    /// The result of a bucket: the ids of its nodes.
    Bucket(Vec<u64>),
    /// The results by text, such as the name of a type.
    Map(Vec<(GraphText<'static>, CensusReport)>),
    /// The results by allocation stack.
    Stacks(Vec<(StackKey, CensusReport)>),
    /// The results of each breakdown of an array.
    All(Vec<CensusReport>),
}

/// Numbers of nodes and bytes. They may be negative in a difference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CensusCount {
    /// The number of nodes; `None` if the breakdown leaves it out.
    pub count: Option<i128>,
    /// The bytes of the nodes; `None` if the breakdown leaves them out.
    pub bytes: Option<i128>,
    /// The label of the breakdown.
    pub label: Option<String>,
}

/// The key of a report by allocation stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "a stack is recorded, empty, or not recorded")]
pub enum StackKey {
    /// The nodes that this stack allocated.
    Stack(Arc<CensusStack>),
    /// The nodes whose recorded stack has no frames: `null` in Firefox's documentation.
    Empty,
    /// The nodes whose stack was not recorded.
    NoStack,
}

/// One frame of a stack, without its callers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CensusFrame {
    /// The source file, or an address.
    pub source: GraphText<'static>,
    /// The line, from 1; 0 if unknown.
    pub line: u32,
    /// The column, from 1; 0 if unknown.
    pub column: u32,
    /// The name of the function; `None` if it has no name.
    pub function: Option<GraphText<'static>>,
}

impl fmt::Display for CensusFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(function) = &self.function {
            write!(f, "{function} ")?;
        }
        write!(f, "{}:{}:{}", self.source, self.line, self.column)
    }
}

/// A stack: its innermost frame, and the stack of the caller.
///
/// A snapshot may contain deep stacks, so functions here do not recurse into the callers.
#[derive(Clone)]
#[non_exhaustive]
pub struct CensusStack {
    /// The frame.
    pub frame: CensusFrame,
    /// Whether the frame belongs to the system. Stacks that differ only in this flag are different keys.
    pub is_system: bool,
    /// The caller; `None` for the outermost frame.
    pub parent: Option<Arc<CensusStack>>,
}

impl CensusStack {
    /// This frame and its callers, the innermost first.
    pub fn frames(&self) -> impl Iterator<Item = &Self> {
        core::iter::successors(Some(self), |frame| frame.parent.as_deref())
    }

    /// The data that comparisons of stacks use.
    fn parts(&self) -> impl Iterator<Item = (&CensusFrame, bool)> {
        self.frames().map(|at| (&at.frame, at.is_system))
    }
}

impl PartialEq for CensusStack {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self, other) || self.parts().eq(other.parts())
    }
}

impl Eq for CensusStack {}

impl Hash for CensusStack {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().for_each(|part| part.hash(state));
    }
}

impl fmt::Debug for CensusStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.frames().map(|at| &at.frame)).finish()
    }
}

impl Drop for CensusStack {
    fn drop(&mut self) {
        let mut next = self.parent.take();
        while let Some(mut frame) = next.and_then(Arc::into_inner) {
            next = frame.parent.take();
        }
    }
}

/// A key of one level of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "reports have only these kinds of keys")]
pub enum CensusKey {
    /// A name, such as the name of a type, a class or a file.
    Text(GraphText<'static>),
    /// A stack.
    Stack(Arc<CensusStack>),
    /// An index in an array.
    Place(usize),
}

impl CensusReport {
    /// The parts of the report, in the report's order.
    pub fn children(&self) -> Vec<(CensusKey, &Self)> {
        match self {
            Self::Count(_) | Self::Bucket(_) => Vec::new(),
            Self::Map(entries) => {
                entries.iter().map(|(key, report)| (CensusKey::Text(key.clone()), report)).collect()
            }
            Self::Stacks(entries) => entries
                .iter()
                .map(|(key, report)| match key {
                    StackKey::Stack(frame) => (CensusKey::Stack(Arc::clone(frame)), report),
                    StackKey::Empty => (CensusKey::Text("null".into()), report),
                    StackKey::NoStack => (CensusKey::Text("noStack".into()), report),
                })
                .collect(),
            Self::All(each) => {
                each.iter().enumerate().map(|(at, report)| (CensusKey::Place(at), report)).collect()
            }
        }
    }

    /// The part with this text as its key, such as `objects`; `None` if there is none.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Map(entries) => entries.iter().find(|(text, _)| *text == key).map(|(_, report)| report),
            _ => None,
        }
    }
}

/// Moves keys that look like an array index to the front, in numeric order, as in every JavaScript object.
pub(crate) fn sort_keys(entries: &mut [(GraphText<'static>, CensusReport)]) {
    entries.sort_by_key(|(key, _)| array_index(key).map_or((true, 0), |index| (false, index)));
}

fn array_index(key: &GraphText<'_>) -> Option<u32> {
    let text = key.as_str()?;
    let index = text.parse::<u32>().ok().filter(|index| *index < u32::MAX)?;
    (index.to_string() == text).then_some(index)
}
