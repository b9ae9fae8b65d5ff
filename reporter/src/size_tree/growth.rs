//! The tree while it grows: an arena of nodes, with a look-up that is one compare on the hot path.
//!
//! Invariants: a node's id is greater than its parent's. On the way from the root to a node no
//! type occurs twice: a part whose type is already on the way is merged with that ancestor, so
//! that a list of a million nodes is one node. That bounds the depth by the number of types;
//! [`DEPTH`] and [`NODES`] bound what many mutually recursive types could make of it, and a part
//! beyond them is merged with its parent.

use crate::reading::Edge;
use crate::size_summary::SizeSummary;

/// Levels below the root. With two levels of JSON each, readers that stop at 128 can read a tree.
const DEPTH: u32 = 60;
const NODES: usize = 16 * 1024;
const NONE: u32 = u32::MAX;

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
    /// The link that is probably taken next: behind the one taken last. Fields come in the same
    /// order each time, and a container has but one or two kinds of parts.
    expected: u32,
}

/// From a node to the node of a part, by the addresses of names: equal addresses mean equal names.
/// The reverse need not hold, so there may be several links for one kind of part. The links of a
/// node form a ring.
#[derive(Debug)]
struct Link {
    edge: Edge,
    type_name: TypeName,
    target: u32,
    next: u32,
    /// 0 if the part was merged with its parent for want of room.
    count: u32,
}

#[derive(Debug)]
pub(super) struct Growth {
    nodes: Vec<Grown>,
    links: Vec<Link>,
    /// The node that blocks go to.
    current: u32,
    /// Where each part entered and not left yet was entered from.
    entered_from: Vec<u32>,
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
            expected: NONE,
        };
        Self { nodes: vec![root], links: Vec::new(), current: 0, entered_from: Vec::with_capacity(64) }
    }

    pub(super) fn into_nodes(self) -> Vec<Grown> {
        self.nodes
    }

    #[inline]
    pub(super) fn add(&mut self, block: SizeSummary) {
        self.nodes[self.current as usize].own += block;
    }

    #[inline]
    pub(super) fn enter(&mut self, edge: Edge, type_name: TypeName) {
        let from = &mut self.nodes[self.current as usize];
        let (target, count) = match self.links.get(from.expected as usize) {
            Some(link) if link.is(edge, type_name) => {
                from.expected = link.next;
                (link.target, link.count)
            }
            _ => self.look_up(edge, type_name),
        };
        self.nodes[target as usize].count += u64::from(count);
        self.entered_from.push(self.current);
        self.current = target;
    }

    #[inline]
    pub(super) fn leave(&mut self) {
        self.current = self.entered_from.pop().unwrap_or(0);
    }

    /// The rest of the ring, then a comparison of names.
    #[inline(never)]
    fn look_up(&mut self, edge: Edge, type_name: TypeName) -> (u32, u32) {
        let expected = self.nodes[self.current as usize].expected;
        let found = self.ring(expected).find(|link| link.is(edge, type_name));
        let (target, count, next) = match found {
            Some(link) => (link.target, link.count, link.next),
            None => {
                let (target, count) = self.target(edge, type_name);
                (target, count, self.push_link(edge, type_name, target, count))
            }
        };
        self.nodes[self.current as usize].expected = next;
        (target, count)
    }

    fn ring(&self, start: u32) -> impl Iterator<Item = &Link> {
        let link = |id: u32| self.links.get(id as usize).map(|link| (id, link));
        core::iter::successors(link(start), move |(_, last)| link(last.next).filter(|(id, _)| *id != start))
            .map(|(_, link)| link)
    }

    /// Puts a link before the expected one, behind all others of the ring; returns what follows.
    fn push_link(&mut self, edge: Edge, type_name: TypeName, target: u32, count: u32) -> u32 {
        let expected = self.nodes[self.current as usize].expected;
        let id = small(self.links.len());
        let next = if expected == NONE { id } else { expected };
        self.links.push(Link { edge, type_name, target, next, count });
        if expected != NONE {
            let mut last = expected;
            while self.links[last as usize].next != expected {
                last = self.links[last as usize].next;
            }
            self.links[last as usize].next = id;
        }
        next
    }

    /// The node of a part met for the first time, and what it adds to the node's count.
    fn target(&mut self, edge: Edge, type_name: TypeName) -> (u32, u32) {
        let name = type_name();
        let from = self.nodes[self.current as usize].expected;
        let alias = self.ring(from).find(|link| link.edge == edge && (link.type_name)() == name);
        if let Some(link) = alias {
            return (link.target, link.count);
        }
        let mut ancestor = self.current;
        while ancestor != NONE {
            let node = &self.nodes[ancestor as usize];
            if (node.type_name)() == name {
                return (ancestor, 1);
            }
            ancestor = node.parent;
        }
        let depth = self.nodes[self.current as usize].depth + 1;
        if depth > DEPTH || self.nodes.len() >= NODES {
            return (self.current, 0);
        }
        let id = small(self.nodes.len());
        self.nodes.push(Grown {
            edge: Some(edge),
            type_name,
            parent: self.current,
            count: 0,
            own: SizeSummary::default(),
            depth,
            expected: NONE,
        });
        (id, 1)
    }
}

impl Link {
    #[inline]
    fn is(&self, edge: Edge, type_name: TypeName) -> bool {
        self.type_name as usize == type_name as usize && same(self.edge, edge)
    }
}

#[inline]
fn same(a: Edge, b: Edge) -> bool {
    let at = |a: &'static str, b: &'static str| core::ptr::eq(a, b);
    match (a, b) {
        (Edge::Field(a), Edge::Field(b)) => at(a, b),
        (Edge::VariantField(a, c), Edge::VariantField(b, d)) => at(a, b) && at(c, d),
        (Edge::Element, Edge::Element) | (Edge::Key, Edge::Key) | (Edge::Value, Edge::Value) => true,
        _ => a == b,
    }
}

fn small(n: usize) -> u32 {
    u32::try_from(n).expect("nodes are bounded, and links by the names in a program")
}
