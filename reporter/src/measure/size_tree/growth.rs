//! A tree under construction: a list of nodes, with a look-up that needs one comparison on the hot path.
//!
//! Invariants: a node's id is greater than its parent's id. On the path from the root to a node, each type occurs
//! only once: a part whose type already occurs on the path is merged with that ancestor, so a list of a million nodes
//! is one node. So the number of types bounds the depth. [`DEPTH`] and [`NODES`] bound trees of many mutually
//! recursive types. Further parts are merged with their parents.

use hashbrown::HashMap;

use crate::measure::block::Edge;
use crate::measure::size_summary::SizeSummary;

/// The largest number of levels below the root. Each level is two levels of JSON, so a reader with a limit of 128
/// levels can read every tree.
const DEPTH: u32 = 60;
const NODES: usize = 16 * 1024;
const NONE: u32 = u32::MAX;

pub(super) type NameFunction = fn() -> &'static str;

#[derive(Clone, Debug)]
pub(super) struct GrownNode {
    /// The edge from the parent; `None` for the root.
    pub(super) edge: Option<Edge>,
    pub(super) type_name: NameFunction,
    pub(super) parent: u32,
    /// The number of parts that are merged into this node.
    pub(super) count: u64,
    pub(super) own: SizeSummary,
    depth: u32,
    first_child: u32,
    /// The next child of the same parent.
    next: u32,
}

/// A link from a node to the node of a part, by the addresses of names. Equal addresses mean equal names, but equal
/// names may have different addresses, so one kind of part may have several links.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct PartLink {
    key: LinkKey,
    /// The number of parts reached by this link that the target node has not counted yet.
    parts: u64,
    from: u32,
    found: FoundPart,
}

#[derive(Clone, Copy, Debug)]
struct FoundPart {
    target: u32,
    /// `false` if the part was merged with its parent because the tree is full.
    counts: bool,
}

/// The addresses of the function that names the type, of the field's name and of the variant's name. `lengths` contains
/// the kind of edge and the lengths of the two names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct LinkKey {
    type_name: usize,
    field: usize,
    variant: usize,
    lengths: usize,
}

/// The number of places in each table of recent links (`hot` and `warm`); a power of two.
const HOT: usize = 256;

#[derive(Debug)]
pub(super) struct GrowingTree {
    nodes: Vec<GrownNode>,
    hot: Box<[PartLink; HOT]>,
    warm: Box<[PartLink; HOT]>,
    links: HashMap<(u32, LinkKey), FoundPart>,
    /// The node that new blocks belong to.
    current: u32,
    /// The sum of blocks not yet added to the node `here_of`. A loop can keep this sum in registers.
    here: SizeSummary,
    here_of: u32,
}

impl GrowingTree {
    pub(super) fn new(type_name: NameFunction) -> Self {
        let root = GrownNode {
            edge: None,
            type_name,
            parent: NONE,
            count: 1,
            own: SizeSummary::default(),
            depth: 0,
            first_child: NONE,
            next: NONE,
        };
        let key = LinkKey { type_name: 0, field: 0, variant: 0, lengths: 0 };
        let nothing = PartLink { key, parts: 0, from: NONE, found: FoundPart { target: 0, counts: false } };
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

    pub(super) fn into_nodes(mut self) -> Vec<GrownNode> {
        self.settle();
        (0..HOT).for_each(|place| self.settle_link(place));
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

    /// Moves to the node of a part. Returns the previous node, for [`leave`](Self::leave).
    #[inline(always)]
    pub(super) fn enter(&mut self, edge: Edge, type_name: NameFunction) -> u32 {
        let from = self.current;
        let key = LinkKey::new(edge, type_name);
        // The place does not depend on `from`, so the processor can load the link early.
        let link = &mut self.hot[key.place()];
        if link.from == from && link.key.is(key) {
            link.parts += 1;
            self.current = link.found.target;
        } else {
            // The arguments are passed in registers, so the fast path above stores nothing.
            match edge {
                Edge::Field(field) => self.enter_field(field, type_name),
                Edge::VariantField(variant, field) => self.enter_variant_field(variant, field, type_name),
                Edge::Element => self.enter_element(type_name),
                Edge::Key => self.enter_key(type_name),
                Edge::Value => self.enter_value(type_name),
            }
        }
        from
    }

    #[cold]
    #[inline(never)]
    fn enter_field(&mut self, field: &'static str, type_name: NameFunction) {
        self.look_up(Edge::Field(field), type_name);
    }

    #[cold]
    #[inline(never)]
    fn enter_variant_field(&mut self, variant: &'static str, field: &'static str, type_name: NameFunction) {
        self.look_up(Edge::VariantField(variant, field), type_name);
    }

    #[cold]
    #[inline(never)]
    fn enter_element(&mut self, type_name: NameFunction) {
        self.look_up(Edge::Element, type_name);
    }

    #[cold]
    #[inline(never)]
    fn enter_key(&mut self, type_name: NameFunction) {
        self.look_up(Edge::Key, type_name);
    }

    #[cold]
    #[inline(never)]
    fn enter_value(&mut self, type_name: NameFunction) {
        self.look_up(Edge::Value, type_name);
    }

    /// The part entered last represents `parts` parts.
    #[inline]
    pub(super) fn merged(&mut self, parts: u64) {
        let count = &mut self.nodes[self.current as usize].count;
        // `enter` has already counted one part.
        *count = count.wrapping_add(parts).wrapping_sub(1);
    }

    #[inline(always)]
    pub(super) fn leave(&mut self, to: u32) {
        self.current = to;
    }

    /// Looks up the link of a part in a second table, at a place that also depends on the parent, and then among all
    /// links.
    fn look_up(&mut self, edge: Edge, type_name: NameFunction) {
        let from = self.current;
        let key = LinkKey::new(edge, type_name);
        let place = key.place();
        let second = place.wrapping_add(from as usize).wrapping_mul(7) % HOT;
        let warm = &self.warm[second];
        if warm.from != from || warm.key != key {
            let found = match self.links.get(&(from, key)) {
                Some(known) => *known,
                None => {
                    let found = self.target(edge, type_name);
                    self.links.insert((from, key), found);
                    found
                }
            };
            self.warm[second] = PartLink { key, parts: 1, from, found };
        }
        self.settle_link(place);
        self.hot[place] = self.warm[second];
        self.current = self.hot[place].found.target;
    }

    fn settle_link(&mut self, place: usize) {
        let PartLink { parts, found, .. } = self.hot[place];
        if found.counts {
            let count = &mut self.nodes[found.target as usize].count;
            *count = count.wrapping_add(parts);
        }
    }

    /// Finds or creates the node of a part, when the walk first meets this link.
    fn target(&mut self, edge: Edge, type_name: NameFunction) -> FoundPart {
        let name = type_name();
        let current = self.current;
        let mut child = self.nodes[current as usize].first_child;
        while child != NONE {
            let node = &self.nodes[child as usize];
            if node.edge == Some(edge) && (node.type_name)() == name {
                return FoundPart { target: child, counts: true };
            }
            child = node.next;
        }
        let mut ancestor = current;
        while ancestor != NONE {
            let node = &self.nodes[ancestor as usize];
            if (node.type_name)() == name {
                return FoundPart { target: ancestor, counts: true };
            }
            ancestor = node.parent;
        }
        let depth = self.nodes[current as usize].depth + 1;
        if depth > DEPTH || self.nodes.len() >= NODES {
            return FoundPart { target: current, counts: false };
        }
        let id = small(self.nodes.len());
        let node = GrownNode {
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
        FoundPart { target: id, counts: true }
    }
}

impl LinkKey {
    #[inline(always)]
    fn new(edge: Edge, type_name: NameFunction) -> Self {
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
            // The number is unique for all names that a compiler accepts.
            lengths: kind | field.len() << 4 | variant.len() << 32,
        }
    }

    #[inline(always)]
    fn place(self) -> usize {
        // Functions are at least 16 bytes apart, so the shifted addresses still differ.
        (self.type_name >> 4 ^ self.field ^ self.variant << 1 ^ self.lengths) % HOT
    }

    /// Whether the keys are equal. Does not compare fields that are always 0 for this kind of edge.
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
    u32::try_from(n).expect("the limit bounds the nodes, and the names in a program bound the links")
}
