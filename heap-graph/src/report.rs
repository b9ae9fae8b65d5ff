//! Reports of a census: what was counted, by the keys of the breakdown, in Firefox's order.
//!
//! Counts and sums are of 128 bits and signed, so that neither sums nor differences wrap.

pub(crate) mod json;

use core::fmt;
use core::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::text::Text;

/// What a census found.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Report {
    /// Of a count.
    Count(Count),
    /// Of a bucket: ids of nodes.
    Bucket(Vec<u64>),
    /// Of anything with text for keys.
    Map(Vec<(Text<'static>, Report)>),
    /// Of allocation stacks.
    Stacks(Vec<(StackKey, Report)>),
    /// Of each breakdown of an array.
    All(Vec<Report>),
}

/// Nodes and bytes; negative in a difference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Count {
    /// Nodes, if asked for.
    pub count: Option<i128>,
    /// Their bytes, if asked for.
    pub bytes: Option<i128>,
    /// The label of the breakdown.
    pub label: Option<String>,
}

/// Where nodes were allocated.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "there is a stack or there is none")]
pub enum StackKey {
    /// By this stack.
    Stack(Arc<ReportFrame>),
    /// Nobody knows.
    NoStack,
}

/// One frame of a stack, without its callers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Frame {
    /// The file or address.
    pub source: Text<'static>,
    /// From 1; 0 if unknown.
    pub line: u32,
    /// From 1; 0 if unknown.
    pub column: u32,
    /// The function; `None` if it has no name.
    pub function: Option<Text<'static>>,
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(function) = &self.function {
            write!(f, "{function} ")?;
        }
        write!(f, "{}:{}:{}", self.source, self.line, self.column)
    }
}

/// A frame of a report's stack, and its callers.
///
/// A snapshot may hold stacks of any depth, so nothing here recurses into the callers.
#[derive(Clone)]
#[non_exhaustive]
pub struct ReportFrame {
    /// The frame.
    pub frame: Frame,
    /// Whether it belongs to the system: stacks that differ in this alone are two.
    pub is_system: bool,
    /// The caller; `None` for the oldest frame.
    pub parent: Option<Arc<ReportFrame>>,
}

impl ReportFrame {
    /// This frame and its callers, youngest first.
    pub fn frames(&self) -> impl Iterator<Item = &Self> {
        core::iter::successors(Some(self), |frame| frame.parent.as_deref())
    }

    /// What makes a stack the one it is.
    fn parts(&self) -> impl Iterator<Item = (&Frame, bool)> {
        self.frames().map(|at| (&at.frame, at.is_system))
    }
}

impl PartialEq for ReportFrame {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self, other) || self.parts().eq(other.parts())
    }
}

impl Eq for ReportFrame {}

impl Hash for ReportFrame {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().for_each(|part| part.hash(state));
    }
}

impl fmt::Debug for ReportFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.frames().map(|at| &at.frame)).finish()
    }
}

impl Drop for ReportFrame {
    fn drop(&mut self) {
        let mut next = self.parent.take();
        while let Some(mut frame) = next.and_then(Arc::into_inner) {
            next = frame.parent.take();
        }
    }
}

/// A step into a report.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "what reports have for keys")]
pub enum Key {
    /// The name of a type, a class, a file.
    Text(Text<'static>),
    /// A stack.
    Stack(Arc<ReportFrame>),
    /// A place in an array.
    Place(usize),
}

impl Report {
    /// The parts of a report, in its order.
    pub fn children(&self) -> Vec<(Key, &Self)> {
        match self {
            Self::Count(_) | Self::Bucket(_) => Vec::new(),
            Self::Map(entries) => {
                entries.iter().map(|(key, report)| (Key::Text(key.clone()), report)).collect()
            }
            Self::Stacks(entries) => entries
                .iter()
                .map(|(key, report)| match key {
                    StackKey::Stack(frame) => (Key::Stack(Arc::clone(frame)), report),
                    StackKey::NoStack => (Key::Text("noStack".into()), report),
                })
                .collect(),
            Self::All(each) => each.iter().enumerate().map(|(at, report)| (Key::Place(at), report)).collect(),
        }
    }

    /// The part under a text, such as `objects`.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Map(entries) => entries.iter().find(|(text, _)| *text == key).map(|(_, report)| report),
            _ => None,
        }
    }
}

/// Puts keys that JavaScript takes for an array's index first, in their order, as in any object.
pub(crate) fn sort_keys(entries: &mut [(Text<'static>, Report)]) {
    entries.sort_by_key(|(key, _)| array_index(key).map_or((true, 0), |index| (false, index)));
}

fn array_index(key: &Text<'_>) -> Option<u32> {
    let text = key.as_str()?;
    let index = text.parse::<u32>().ok().filter(|index| *index < u32::MAX)?;
    (index.to_string() == text).then_some(index)
}
