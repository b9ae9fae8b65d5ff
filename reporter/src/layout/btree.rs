//! `BTreeMap` and `BTreeSet`: leaves and inner nodes of up to 11 entries.
//!
//! The nodes are counted from the addresses of the keys. In order they come as a run of
//! neighbours (one leaf), then one key of an inner node, then the next leaf, and so on. The keys
//! between the leaves, taken alone, come the same way one level up: a run of neighbours is one
//! inner node, and the key after it lies higher. So each level splits what it is fed into runs,
//! and feeds the key after each run to the level above. Exact for every tree that is not empty.

use core::alloc::Layout;
use core::ptr::NonNull;

/// std's `LeafNode`; as `repr(Rust)` as the original, so that the compiler lays both out alike.
#[allow(dead_code, reason = "only its layout is of use")]
struct Leaf<K, V> {
    parent: Option<NonNull<()>>,
    parent_index: u16,
    len: u16,
    keys: [K; 11],
    values: [V; 11],
}

/// std's `InternalNode`.
#[repr(C)]
#[allow(dead_code, reason = "only its layout is of use")]
struct Inner<K, V> {
    data: Leaf<K, V>,
    edges: [NonNull<()>; 12],
}

pub(crate) const fn leaf<K, V>() -> Layout {
    Layout::new::<Leaf<K, V>>()
}

pub(crate) const fn inner<K, V>() -> Layout {
    Layout::new::<Inner<K, V>>()
}

/// Inner nodes have 5 keys at least but for the root: 2^64 entries need no more levels than this.
const LEVELS: usize = 32;

/// Told each key in order, finds where a node starts.
///
/// Of each level it holds the address where the next key of the node lies if the node goes on; 0 if the
/// next key starts a node.
pub(crate) struct Nodes {
    /// Apart from the rest, so that it can live in a register.
    leaf: usize,
    inner: [usize; LEVELS],
}

/// What a key tells.
pub(crate) enum Found {
    /// It is the first of a leaf.
    Leaf,
    /// It is the first of an inner node.
    Inner,
    /// Its node is known already.
    Nothing,
}

impl Nodes {
    #[inline]
    pub(crate) fn new() -> Self {
        Self { leaf: 0, inner: [0; LEVELS] }
    }

    #[inline(always)]
    pub(crate) fn key<K>(&mut self, key: &K) -> Found {
        let address = (&raw const *key).addr();
        let after = address.wrapping_add(size_of::<K>());
        if self.leaf == address {
            self.leaf = after;
            return Found::Nothing;
        }
        if self.leaf == 0 {
            self.leaf = after;
            return Found::Leaf;
        }
        self.leaf = 0;
        inner_key(&mut self.inner, address, after)
    }
}

#[inline(never)]
fn inner_key(levels: &mut [usize; LEVELS], address: usize, after: usize) -> Found {
    for next in levels {
        if *next == address {
            *next = after;
            return Found::Nothing;
        }
        if *next == 0 {
            *next = after;
            return Found::Inner;
        }
        *next = 0;
    }
    Found::Nothing
}
