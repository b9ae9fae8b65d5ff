//! `BTreeMap` and `BTreeSet`: leaves and inner nodes of up to 11 entries.
//!
//! The addresses of the keys reveal the nodes. In key order, adjacent keys form one leaf. Then follows one key of an
//! inner node, then the next leaf, and so on. The keys between the leaves form the same pattern one level up:
//! adjacent keys form one inner node, and the key after them is on a higher level. So each level splits its keys into
//! runs, and passes the key after each run to the level above. The result is exact for every tree that is not empty.

use core::alloc::Layout;
use core::ptr::NonNull;

/// std's `LeafNode`. It is `repr(Rust)` like the original, so that the compiler gives both the same layout.
#[allow(dead_code, reason = "only its layout is used")]
struct LeafNode<K, V> {
    parent: Option<NonNull<()>>,
    parent_index: u16,
    len: u16,
    keys: [K; 11],
    values: [V; 11],
}

/// std's `InternalNode`.
#[repr(C)]
#[allow(dead_code, reason = "only its layout is used")]
struct InnerNode<K, V> {
    data: LeafNode<K, V>,
    edges: [NonNull<()>; 12],
}

pub(crate) const fn leaf<K, V>() -> Layout {
    Layout::new::<LeafNode<K, V>>()
}

pub(crate) const fn inner<K, V>() -> Layout {
    Layout::new::<InnerNode<K, V>>()
}

/// Inner nodes except the root have at least 5 keys, so 2^64 entries need fewer levels.
const LEVELS: usize = 32;

/// Receives each key in order and finds the first key of each node.
///
/// For each level, it stores the address of the next key, if the node continues; 0 if the next key starts a node.
pub(crate) struct TreeNodes {
    /// The address for the leaf level. It is a separate field, so that the compiler can keep it in a register.
    leaf: usize,
    inner: [usize; LEVELS],
}

/// The position of a key.
pub(crate) enum KeyPosition {
    /// The key is the first key of a leaf.
    Leaf,
    /// The key is the first key of an inner node.
    Inner,
    /// The node of the key is already counted.
    Nothing,
}

impl TreeNodes {
    #[inline]
    pub(crate) fn new() -> Self {
        Self { leaf: 0, inner: [0; LEVELS] }
    }

    #[inline(always)]
    pub(crate) fn key<K>(&mut self, key: &K) -> KeyPosition {
        let address = (&raw const *key).addr();
        let after = address.wrapping_add(size_of::<K>());
        if self.leaf == address {
            self.leaf = after;
            return KeyPosition::Nothing;
        }
        if self.leaf == 0 {
            self.leaf = after;
            return KeyPosition::Leaf;
        }
        self.leaf = 0;
        inner_key(&mut self.inner, address, after)
    }
}

#[inline(never)]
fn inner_key(levels: &mut [usize; LEVELS], address: usize, after: usize) -> KeyPosition {
    for next in levels {
        if *next == address {
            *next = after;
            return KeyPosition::Nothing;
        }
        if *next == 0 {
            *next = after;
            return KeyPosition::Inner;
        }
        *next = 0;
    }
    KeyPosition::Nothing
}
