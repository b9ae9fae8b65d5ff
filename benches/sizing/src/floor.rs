//! Handwritten walks: the least work with which a walk can visit all blocks.

#![allow(unsafe_code, reason = "calls the C library, as a handwritten walk would")]

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use rustc_hash::FxHasher;

use crate::data::{Graph, Json, Node, Record};

pub(crate) trait Floor {
    fn walk<A: Ask>(&self) -> usize;
}

/// The source of a block's size.
pub(crate) trait Ask {
    fn block<T>(pointer: *const T, bytes: usize) -> usize;
}

pub(crate) struct Computed;

impl Ask for Computed {
    #[inline(always)]
    fn block<T>(_: *const T, bytes: usize) -> usize {
        bytes
    }
}

pub(crate) struct Measured;

impl Ask for Measured {
    #[inline(always)]
    fn block<T>(pointer: *const T, bytes: usize) -> usize {
        if bytes == 0 {
            return 0;
        }
        // SAFETY: the walks below pass starts of live blocks of the C library's malloc.
        unsafe { libc::malloc_usable_size(pointer.cast_mut().cast()) }
    }
}

#[inline(always)]
fn text<A: Ask>(text: &String) -> usize {
    A::block(text.as_ptr(), text.capacity())
}

#[inline(always)]
fn vec<A: Ask, T>(vec: &Vec<T>) -> usize {
    A::block(vec.as_ptr(), vec.capacity() * size_of::<T>())
}

fn hash_table<T>(capacity: usize) -> usize {
    let slots = match capacity {
        0 => return 0,
        1..=3 => 4,
        4..=7 => 8,
        _ => (capacity * 8 / 7).next_power_of_two(),
    };
    (slots * size_of::<T>()).next_multiple_of(align_of::<T>().max(16)) + slots + 16
}

/// An estimate, since std gives no access to the nodes. The estimate assumes that the nodes are two thirds full.
fn btree<K, V>(len: usize) -> usize {
    let leaf = 11 * (size_of::<K>() + size_of::<V>()) + 16;
    let leaves = len.div_ceil(8);
    leaves * leaf + leaves.saturating_sub(1).div_ceil(8) * (leaf + 96)
}

impl Floor for Vec<String> {
    fn walk<A: Ask>(&self) -> usize {
        vec::<A, _>(self) + self.iter().map(text::<A>).sum::<usize>()
    }
}

impl Floor for HashMap<u64, Vec<u32>> {
    fn walk<A: Ask>(&self) -> usize {
        hash_table::<(u64, Vec<u32>)>(self.capacity()) + self.values().map(vec::<A, _>).sum::<usize>()
    }
}

impl Floor for BTreeMap<String, Box<Record>> {
    fn walk<A: Ask>(&self) -> usize {
        let entries = self
            .iter()
            .map(|(key, value)| text::<A>(key) + A::block(&raw const **value, size_of::<Record>()));
        btree::<String, Box<Record>>(self.len()) + entries.sum::<usize>()
    }
}

impl Floor for Node {
    fn walk<A: Ask>(&self) -> usize {
        let children = [&self.left, &self.right].into_iter().flatten();
        children.map(|child| A::block(&raw const **child, size_of::<Node>()) + child.walk::<A>()).sum()
    }
}

impl Floor for Graph {
    fn walk<A: Ask>(&self) -> usize {
        let mut seen: HashSet<usize, BuildHasherDefault<FxHasher>> = HashSet::default();
        let mut bytes = vec::<A, _>(&self.nodes) + vec::<A, _>(&self.edges);
        for leaf in self.nodes.iter().chain(&self.edges) {
            let pointer = Arc::as_ptr(leaf);
            if seen.insert(pointer.addr()) {
                bytes += A::block(pointer.wrapping_byte_sub(16), 16 + size_of_val(&**leaf));
                bytes += text::<A>(&leaf.name);
            }
        }
        bytes
    }
}

impl Floor for Vec<[f64; 3]> {
    fn walk<A: Ask>(&self) -> usize {
        vec::<A, _>(self)
    }
}

impl Floor for Json {
    fn walk<A: Ask>(&self) -> usize {
        match self {
            Json::Text(value) => text::<A>(value),
            Json::Array(values) => vec::<A, _>(values) + values.iter().map(Self::walk::<A>).sum::<usize>(),
            Json::Object(map) => {
                let entries = map.iter().map(|(key, value)| text::<A>(key) + value.walk::<A>());
                btree::<String, Json>(map.len()) + entries.sum::<usize>()
            }
            Json::Null | Json::Bool(_) | Json::Number(_) => 0,
        }
    }
}
