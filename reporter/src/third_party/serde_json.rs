//! `serde_json`: exact; with its feature `preserve_order` at least the room of the entries that are
//! there, with `arbitrary_precision` numbers are opaque.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

use crate::impls::map::node;
use crate::impls::plain::plain;
use crate::layout::btree::Nodes;
use crate::layout::index_map;
use crate::malloc_size_of::MallocSizeOf;
use crate::ops::MallocSizeOfOps;
use crate::reading::Reading;
use crate::skipped::SkipReason;

plain!([] RawValue);

/// Built with `arbitrary_precision` a number is its text, which is not shown.
impl MallocSizeOf for Number {
    const NEEDS_WALK: bool = size_of::<Self>() == size_of::<String>();

    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        if Self::NEEDS_WALK { ops.skip::<Self>(SkipReason::Opaque) } else { 0 }
    }
}

impl MallocSizeOf for Value {
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        match self {
            Self::Null | Self::Bool(_) => 0,
            Self::Number(number) => number.size_of_excluding_this(ops),
            Self::String(text) => text.size_of_excluding_this(ops),
            Self::Array(values) => values.size_of_excluding_this(ops),
            Self::Object(map) => map.size_of_excluding_this(ops),
        }
    }
}

/// Built with `preserve_order` a map is an index map, which shows its length only.
const IS_B_TREE: bool = size_of::<Map<String, Value>>() == size_of::<BTreeMap<String, Value>>();

impl MallocSizeOf for Map<String, Value> {
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        if IS_B_TREE {
            let mut nodes = Nodes::new();
            return ops.contents(|ops| {
                self.iter().fold(0, |sum, (key, value)| {
                    sum + node::<String, Value, R>(&mut nodes, key, ops) + ops.key(key) + ops.value(value)
                })
            });
        }
        let inside = self.keys().next().map_or(core::ptr::null(), |key| &raw const *key);
        let own = index_map::blocks::<String, Value, _, R>(self.len(), inside, ops);
        own + ops
            .contents(|ops| self.iter().fold(0, |sum, (key, value)| sum + ops.key(key) + ops.value(value)))
    }
}
