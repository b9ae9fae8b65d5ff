//! `serde_json`: computed. With its feature `preserve_order`, a map is "at least": it counts only the room that its
//! entries need. With `arbitrary_precision`, numbers are opaque. `RawValue` needs a feature of `serde_json` that this
//! crate does not enable.

use std::collections::BTreeMap;

use memory_report::SkipReason;
use serde_json::{Map, Number, Value};

use crate::measure::impls::map::node;
use crate::measure::layout::btree::TreeNodes;
use crate::measure::layout::index_map;
use crate::measure::malloc_size_of::MallocSizeOf;
use crate::measure::ops::{MallocSizeOfOps, total};
use crate::measure::reading::Reading;

/// With `arbitrary_precision` a number contains a text, but gives no access to it.
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

/// With `preserve_order` a map is an index map, which gives access only to its length.
const IS_B_TREE: bool = size_of::<Map<String, Value>>() == size_of::<BTreeMap<String, Value>>();

impl MallocSizeOf for Map<String, Value> {
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        if IS_B_TREE {
            let mut nodes = TreeNodes::new();
            return ops.contents(|ops| {
                total(self.iter().map(|(key, value)| {
                    node::<String, Value, R>(&mut nodes, key, ops) + ops.key(key) + ops.value(value)
                }))
            });
        }
        let inside = self.keys().next().map_or(core::ptr::null(), |key| &raw const *key);
        let own = index_map::blocks::<String, Value, _, R>(self.len(), inside, ops);
        own + ops.contents(|ops| total(self.iter().map(|(key, value)| ops.key(key) + ops.value(value))))
    }
}
