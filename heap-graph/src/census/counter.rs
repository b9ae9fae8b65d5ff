//! Counts nodes by a breakdown, and makes the report with Firefox's order of keys.

use std::sync::Arc;

use hashbrown::HashMap;

use super::breakdown::Breakdown;
use super::report::{CensusCount, CensusFrame, CensusReport, CensusStack, StackKey, sort_keys};
use super::{CensusError, KindGroup};
use crate::graph::{CoarseType, Graph, GraphFrameId, GraphTextId, NodeKind};

/// The counts of one breakdown.
pub(super) struct BreakdownCounter<'b> {
    content: CounterContent<'b>,
    /// The smallest id counted here. It decides the position of the entry in the report.
    smallest_id: u64,
    /// Whether a node was counted here.
    is_used: bool,
}

enum CounterContent<'b> {
    Count {
        count: Option<u64>,
        bytes: Option<u128>,
        label: Option<&'b str>,
    },
    /// The number of the bucket; `None` while it is empty.
    Bucket(Option<u32>),
    ByText {
        by: TextKey,
        then: &'b Breakdown,
        entries: HashMap<GraphTextId, BreakdownCounter<'b>>,
        rest: Option<RestCounter<'b>>,
    },
    ByStack {
        then: &'b Breakdown,
        entries: HashMap<GraphFrameId, BreakdownCounter<'b>>,
        no_stack: Box<BreakdownCounter<'b>>,
    },
    /// The counters, in the order of the report.
    ByCoarseType(Box<[(CoarseType, BreakdownCounter<'b>); 5]>),
    All(Vec<BreakdownCounter<'b>>),
}

#[derive(Clone, Copy)]
enum TextKey {
    Type,
    DescriptiveType,
    Class,
    File,
}

/// The key and the counter for nodes that lack the property of the breakdown, such as a class or a file.
type RestCounter<'b> = (&'static str, Box<BreakdownCounter<'b>>);

impl<'b> BreakdownCounter<'b> {
    pub(super) fn new(breakdown: &'b Breakdown) -> Self {
        let new = |breakdown| Box::new(Self::new(breakdown));
        let by_text = |by, then, rest| CounterContent::ByText { by, then, entries: HashMap::new(), rest };
        let content = match breakdown {
            Breakdown::Count { count, bytes, label } => CounterContent::Count {
                count: count.then_some(0),
                bytes: bytes.then_some(0),
                label: label.as_deref(),
            },
            Breakdown::Bucket => CounterContent::Bucket(None),
            Breakdown::InternalType { then } => by_text(TextKey::Type, then, None),
            Breakdown::DescriptiveType { then } => by_text(TextKey::DescriptiveType, then, None),
            Breakdown::ObjectClass { then, other } => {
                by_text(TextKey::Class, then, Some(("other", new(other))))
            }
            Breakdown::Filename { then, no_filename } => {
                by_text(TextKey::File, then, Some(("noFilename", new(no_filename))))
            }
            Breakdown::AllocationStack { then, no_stack } => {
                CounterContent::ByStack { then, entries: HashMap::new(), no_stack: new(no_stack) }
            }
            Breakdown::CoarseType { objects, scripts, strings, other, dom_node } => {
                CounterContent::ByCoarseType(Box::new([
                    (CoarseType::Object, Self::new(objects)),
                    (CoarseType::Script, Self::new(scripts)),
                    (CoarseType::String, Self::new(strings)),
                    (CoarseType::Other, Self::new(other)),
                    (CoarseType::DomNode, Self::new(dom_node)),
                ]))
            }
            Breakdown::All(each) => CounterContent::All(each.iter().map(Self::new).collect()),
        };
        Self { content, smallest_id: u64::MAX, is_used: false }
    }

    /// Counts the nodes of one kind, and appends the numbers of their buckets to `into`.
    pub(super) fn add(
        &mut self,
        graph: &Graph,
        kind: &NodeKind,
        group: KindGroup,
        buckets: &mut Vec<Vec<u64>>,
        into: &mut Vec<u32>,
    ) -> Result<(), CensusError> {
        self.smallest_id = self.smallest_id.min(group.smallest_id);
        self.is_used = true;
        let inner = match &mut self.content {
            CounterContent::Count { count, bytes, .. } => {
                *count = count.map(|count| count + group.count);
                *bytes = bytes.map(|bytes| bytes + group.bytes);
                return Ok(());
            }
            CounterContent::Bucket(place) => {
                let place = *place.get_or_insert_with(|| {
                    buckets.push(Vec::new());
                    // Each kind adds at most one bucket for each breakdown, so the number fits in 32 bits.
                    buckets.len() as u32 - 1
                });
                into.push(place);
                return Ok(());
            }
            CounterContent::All(each) => {
                return each.iter_mut().try_for_each(|inner| inner.add(graph, kind, group, buckets, into));
            }
            CounterContent::ByText { by, then, entries, rest } => {
                let text = match by {
                    TextKey::Type => Some(kind.type_name),
                    TextKey::DescriptiveType => kind.descriptive_name,
                    TextKey::Class => kind.class_name,
                    TextKey::File => kind.file_name,
                };
                match (text, rest) {
                    (Some(text), _) => entries.entry(text).or_insert_with(|| Self::new(then)),
                    (None, Some((_, rest))) => &mut **rest,
                    (None, None) => {
                        let type_name = graph.text(kind.type_name).to_string();
                        return Err(CensusError::NoDescriptiveName(type_name));
                    }
                }
            }
            CounterContent::ByStack { then, entries, no_stack } => match kind.stack {
                Some(stack) => entries.entry(stack).or_insert_with(|| Self::new(then)),
                None => &mut **no_stack,
            },
            CounterContent::ByCoarseType(each) => {
                let place = match kind.coarse_type {
                    CoarseType::Object => 0,
                    CoarseType::Script => 1,
                    CoarseType::String => 2,
                    CoarseType::Other => 3,
                    CoarseType::DomNode => 4,
                };
                &mut each[place].1
            }
        };
        inner.add(graph, kind, group, buckets, into)
    }

    pub(super) fn report(self, graph: &Graph, naming: &mut ReportTables<'_>) -> CensusReport {
        match self.content {
            CounterContent::Count { count, bytes, label } => CensusReport::Count(CensusCount {
                count: count.map(i128::from),
                bytes: bytes.map(|bytes| i128::try_from(bytes).expect("2^32 sizes of 64 bits fit")),
                label: label.map(str::to_owned),
            }),
            CounterContent::Bucket(place) => CensusReport::Bucket(match place {
                Some(place) => core::mem::take(&mut naming.buckets[place as usize]),
                None => Vec::new(),
            }),
            CounterContent::All(each) => {
                CensusReport::All(each.into_iter().map(|inner| inner.report(graph, naming)).collect())
            }
            CounterContent::ByCoarseType(each) => CensusReport::Map(
                each.into_iter()
                    .map(|(coarse_type, inner)| (coarse_type.key().into(), inner.report(graph, naming)))
                    .collect(),
            ),
            CounterContent::ByStack { entries, no_stack, .. } => {
                let entries = sorted(entries).into_iter();
                let mut entries: Vec<_> = entries
                    .map(|(id, inner)| {
                        let key = match id {
                            GraphFrameId::EMPTY_STACK => StackKey::Empty,
                            id => StackKey::Stack(naming.stack(graph, id)),
                        };
                        (key, inner.report(graph, naming))
                    })
                    .collect();
                if no_stack.is_used {
                    entries.push((StackKey::NoStack, no_stack.report(graph, naming)));
                }
                CensusReport::Stacks(entries)
            }
            CounterContent::ByText { entries, rest, .. } => {
                let mut map = Vec::with_capacity(entries.len() + 1);
                for (id, inner) in sorted(entries) {
                    map.push((graph.text(id).into_owned(), inner.report(graph, naming)));
                }
                if let Some((key, rest)) = rest {
                    let rest = rest.report(graph, naming);
                    // If a key occurs twice, the later value replaces the earlier value at its position, as in a
                    // JavaScript object.
                    match map.iter_mut().find(|(text, _)| *text == key) {
                        Some(entry) => entry.1 = rest,
                        None => map.push((key.into(), rest)),
                    }
                }
                sort_keys(&mut map);
                CensusReport::Map(map)
            }
        }
    }
}

/// The entries in Firefox's order.
fn sorted<K>(entries: HashMap<K, BreakdownCounter<'_>>) -> Vec<(K, BreakdownCounter<'_>)> {
    let mut entries: Vec<_> = entries.into_iter().collect();
    entries.sort_by_key(|(_, counter)| core::cmp::Reverse(counter.smallest_id));
    entries
}

/// The ids in each bucket of a report, and the stacks built so far: equal callers share one stack.
pub(super) struct ReportTables<'a> {
    buckets: &'a mut Vec<Vec<u64>>,
    stacks: HashMap<GraphFrameId, Arc<CensusStack>>,
}

impl<'a> ReportTables<'a> {
    pub(super) fn new(buckets: &'a mut Vec<Vec<u64>>) -> Self {
        Self { buckets, stacks: HashMap::new() }
    }

    /// Returns the stack that consists of the frame and its callers. It does not recurse, since a stack may be deep.
    fn stack(&mut self, graph: &Graph, id: GraphFrameId) -> Arc<CensusStack> {
        let mut missing = Vec::new();
        let mut next = Some(id);
        let mut made = None;
        while let Some(id) = next {
            if let Some(known) = self.stacks.get(&id) {
                made = Some(Arc::clone(known));
                break;
            }
            missing.push(id);
            next = graph.frames().get(id).parent;
        }
        while let Some(id) = missing.pop() {
            let parts = graph.frames().get(id);
            let frame = CensusFrame {
                source: graph.text(parts.source).into_owned(),
                line: parts.line,
                column: parts.column,
                function: parts.function.map(|function| graph.text(function).into_owned()),
            };
            let frame = Arc::new(CensusStack { frame, is_system: parts.is_system, parent: made });
            self.stacks.insert(id, Arc::clone(&frame));
            made = Some(frame);
        }
        made.expect("each frame was known or has just been made")
    }
}
