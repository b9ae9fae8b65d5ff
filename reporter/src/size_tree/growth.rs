//! The tree while it grows: an arena of nodes, with a look-up that is one compare on the hot path.
//!
//! Invariants: a node's id is greater than its parent's. On the way from the root to a node no
//! type occurs twice: a part whose type is already on the way is merged with that ancestor, so
//! that a list of a million nodes is one node. That bounds the depth by the number of types;
//! [`DEPTH`] and [`NODES`] bound what many mutually recursive types could make of it, and a part
//! beyond them is merged with its parent.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use crate::reading::Edge;
use crate::size_summary::SizeSummary;

/// Levels below the root. With two levels of JSON each, readers that stop at 128 can read a tree.
const DEPTH: u32 = 60;
const NODES: usize = 16 * 1024;
const NONE: u32 = u32::MAX;
/// An odd number without pattern: multiplying by it moves low bits up.
const SPREAD: usize = 0x9E37_79B9_7F4A_7C15_u64 as usize;

pub(super) type TypeName = fn() -> &'static str;

#[derive(Clone, Debug)]
pub(super) struct Grown {
    /// `None` for the root.
    pub(super) edge: Option<Edge>,
    pub(super) type_name: TypeName,
    pub(super) parent: u32,
    /// How many parts were merged into this node.
    pub(super) count: u64,
    pub(super) own: SizeSummary,
    depth: u32,
    first_child: u32,
    /// The next child of the same parent.
    next: u32,
}

/// From a node to the node of a part, by the addresses of names: equal addresses mean equal names.
/// The reverse need not hold, so there may be several links for one kind of part.
#[derive(Clone, Copy, Debug)]
struct Link {
    from: u32,
    key: Key,
    target: u32,
    /// 0 if the part was merged with its parent for want of room.
    count: u32,
}

/// Names by address: the type, the field, the variant; and all lengths, with the kind of edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    type_name: usize,
    field: usize,
    variant: usize,
    lengths: usize,
}

/// Links used last, one for each residue of a hash: a power of two.
const HOT: usize = 256;

#[derive(Debug)]
pub(super) struct Growth {
    nodes: Vec<Grown>,
    hot: Box<[Link; HOT]>,
    warm: Box<[Link; HOT]>,
    links: HashMap<(u32, Key), (u32, u32), FxBuildHasher>,
    /// The node that blocks go to.
    current: u32,
    /// Blocks on their way to the node `here_of`: a sum that a loop can keep in registers.
    here: SizeSummary,
    here_of: u32,
}

impl Growth {
    pub(super) fn new(type_name: TypeName) -> Self {
        let root = Grown {
            edge: None,
            type_name,
            parent: NONE,
            count: 1,
            own: SizeSummary::default(),
            depth: 0,
            first_child: NONE,
            next: NONE,
        };
        let key = Key { type_name: 0, field: 0, variant: 0, lengths: 0 };
        let nothing = Link { from: NONE, key, target: 0, count: 0 };
        Self {
            nodes: vec![root],
            hot: Box::new([nothing; HOT]),
            warm: Box::new([nothing; HOT]),
            links: HashMap::default(),
            current: 0,
            here: SizeSummary::default(),
            here_of: 0,
        }
    }

    pub(super) fn into_nodes(mut self) -> Vec<Grown> {
        self.settle();
        self.nodes
    }

    #[inline(always)]
    pub(super) fn add(&mut self, block: SizeSummary) {
        if self.here_of != self.current {
            self.settle();
        }
        self.here += block;
    }

    #[inline]
    fn settle(&mut self) {
        self.nodes[self.here_of as usize].own += self.here;
        self.here = SizeSummary::default();
        self.here_of = self.current;
    }

    /// Goes to the node of a part; returns where to [`leave`](Self::leave) to.
    #[inline(always)]
    pub(super) fn enter(&mut self, edge: Edge, type_name: TypeName) -> u32 {
        let from = self.current;
        let key = Key::new(edge, type_name);
        // The place does not depend on `from`: what comes next is loaded without waiting for it.
        let place = key.place();
        let hot = &self.hot[place];
        let (target, count) = if hot.from == from && hot.key.is(key) {
            (hot.target, hot.count)
        } else {
            self.look_up(place, key, edge, type_name)
        };
        self.nodes[target as usize].count += u64::from(count);
        self.current = target;
        from
    }

    /// The part entered last stands for so many.
    #[inline]
    pub(super) fn merged(&mut self, parts: u64) {
        let count = &mut self.nodes[self.current as usize].count;
        // One was counted on entering.
        *count = count.wrapping_add(parts).wrapping_sub(1);
    }

    #[inline(always)]
    pub(super) fn leave(&mut self, to: u32) {
        self.current = to;
    }

    /// Second place, which differs for each parent, then all links.
    #[inline(never)]
    fn look_up(&mut self, place: usize, key: Key, edge: Edge, type_name: TypeName) -> (u32, u32) {
        let from = self.current;
        let second = place.wrapping_add(from as usize).wrapping_mul(7) % HOT;
        let warm = &self.warm[second];
        if warm.from != from || warm.key != key {
            let (target, count) = match self.links.get(&(from, key)) {
                Some(known) => *known,
                None => {
                    let found = self.target(edge, type_name);
                    self.links.insert((from, key), found);
                    found
                }
            };
            self.warm[second] = Link { from, key, target, count };
        }
        self.hot[place] = self.warm[second];
        (self.hot[place].target, self.hot[place].count)
    }

    /// The node of a part met for the first time, and what it adds to the node's count.
    fn target(&mut self, edge: Edge, type_name: TypeName) -> (u32, u32) {
        let name = type_name();
        let current = self.current;
        let mut child = self.nodes[current as usize].first_child;
        while child != NONE {
            let node = &self.nodes[child as usize];
            if node.edge == Some(edge) && (node.type_name)() == name {
                return (child, 1);
            }
            child = node.next;
        }
        let mut ancestor = current;
        while ancestor != NONE {
            let node = &self.nodes[ancestor as usize];
            if (node.type_name)() == name {
                return (ancestor, 1);
            }
            ancestor = node.parent;
        }
        let depth = self.nodes[current as usize].depth + 1;
        if depth > DEPTH || self.nodes.len() >= NODES {
            return (current, 0);
        }
        let id = small(self.nodes.len());
        let node = Grown {
            edge: Some(edge),
            type_name,
            parent: current,
            count: 0,
            own: SizeSummary::default(),
            depth,
            first_child: NONE,
            next: core::mem::replace(&mut self.nodes[current as usize].first_child, id),
        };
        self.nodes.push(node);
        (id, 1)
    }
}

impl Key {
    #[inline(always)]
    fn new(edge: Edge, type_name: TypeName) -> Self {
        let (kind, field, variant) = match edge {
            Edge::Field(field) => (0, field, ""),
            Edge::VariantField(variant, field) => (1, field, variant),
            Edge::Element => (2, "", ""),
            Edge::Key => (3, "", ""),
            Edge::Value => (4, "", ""),
        };
        Self {
            type_name: type_name as usize,
            field: if kind < 2 { field.as_ptr().addr() } else { 0 },
            variant: if kind == 1 { variant.as_ptr().addr() } else { 0 },
            // Injective for all names that a compiler will take.
            lengths: kind | field.len() << 4 | variant.len() << 32,
        }
    }

    #[inline(always)]
    fn place(self) -> usize {
        let name = self.type_name ^ self.field.rotate_left(5) ^ self.variant.rotate_left(9) ^ self.lengths;
        (name.wrapping_mul(SPREAD) >> 20) % HOT
    }

    /// Whether the keys are equal; leaves out what is 0 for this kind of edge.
    #[inline(always)]
    fn is(&self, other: Self) -> bool {
        let kind = other.lengths & 15;
        self.type_name == other.type_name
            && self.lengths == other.lengths
            && (kind > 1 || self.field == other.field)
            && (kind != 1 || self.variant == other.variant)
    }
}

fn small(n: usize) -> u32 {
    u32::try_from(n).expect("nodes are bounded, and links by the names in a program")
}
