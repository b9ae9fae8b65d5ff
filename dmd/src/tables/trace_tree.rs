//! All stacks, as one tree of calls. A stack is a node with an id of four bytes; the node and its ancestors are the
//! frames.
//!
//! The tree only grows. A thread finds an existing node without a lock, and takes one of many locks to add a new node.
//! Nodes are never moved or removed, so that an id stays valid for the life of the process. When the tree is full, a
//! stack loses its innermost frames, and the tree counts the stack.
//!
//! The first children of a node are in a list, which needs no memory beyond the nodes. Its nodes are near each other
//! in memory, since a program usually makes similar stacks one after another. Further children are in a table.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

pub(crate) use dmd_format::tables::FIRST_PC;
use dmd_format::tables::{NODE, SEGMENT};

use crate::system::lock::Lock;
use crate::system::memory::{self, Arena};
use crate::tables::seen_modules;
use crate::tables::trace_id::TraceId;

/// A node. An empty node is all zero. Id 0 is the root, which is neither a child nor a sibling of a node. So in a link
/// to a child or a sibling, 0 means "no node".
#[repr(C)]
pub(super) struct StackNode {
    pc: AtomicU64,
    parent: AtomicU32,
    /// The newest child in the list.
    first_child: AtomicU32,
    /// The next older child of the same parent in the list.
    next_sibling: AtomicU32,
    /// The number of children in the list, in the lowest four bits. The bits above contain the number of the stack's
    /// change since the peak, or 0.
    listed_and_change: AtomicU32,
}

/// The maximum number of epochs. Later epochs record no stacks, because their nodes would mix with stacks of other
/// libraries. An epoch's number is less than any return address, since no page is mapped there.
const MOST_EPOCHS: usize = FIRST_PC as usize - 1;

/// The maximum number of children in a list.
const LISTED: u32 = 8;
const LISTED_BITS: u32 = 4;
const _: () = assert!(size_of::<StackNode>() == NODE);
const _: () = assert!(LISTED < 1 << LISTED_BITS && TraceId::BITS < u32::BITS - LISTED_BITS);

const SEGMENTS: usize = (TraceId::MAX as usize + 1) / SEGMENT;
const STRIPES: usize = 64;
const FIRST_INDEX: usize = 64;

/// A node that is not in a list, with copies of its parent and return address. The copies save a load of the node.
struct NodeSlot {
    pc: AtomicU64,
    /// The parent's id in the upper half, the node's id in the lower half; 0 if the slot is empty. The writer stores
    /// this field last.
    link: AtomicU64,
}

/// An open-addressed table of slots, at most half full. The stripe stores it as one word: the address, and above it
/// the logarithm of the length. The table is never unmapped, since another thread may still read it when a larger
/// table replaces it.
#[derive(Clone, Copy)]
struct NodeIndex(usize);

const ADDRESS_BITS: u32 = 56;

impl NodeIndex {
    fn length(self) -> usize {
        if self.0 == 0 { 0 } else { 1 << (self.0 >> ADDRESS_BITS) }
    }

    /// The slots; empty if there is no table yet.
    #[inline(always)]
    fn slots(self) -> &'static [NodeSlot] {
        let start = core::ptr::with_exposed_provenance::<NodeSlot>(self.0 & ((1 << ADDRESS_BITS) - 1));
        if start.is_null() {
            return &[];
        }
        // SAFETY: `roomy_index` took this many slots from the arena, which is never unmapped.
        unsafe { core::slice::from_raw_parts(start, self.length()) }
    }
}

struct IndexStripe {
    index: AtomicUsize,
    lock: Lock,
    used: AtomicUsize,
}

/// The segments of all nodes.
pub(super) type NodeSegments = [AtomicPtr<[StackNode; SEGMENT]>; SEGMENTS];

/// The tree. All zero at first.
pub(crate) struct TraceTree {
    pub(super) segments: NodeSegments,
    /// The number of nodes without the root, or a larger number.
    pub(super) added: AtomicU32,
    stripes: [IndexStripe; STRIPES],
    arena: Arena,
    mapped: AtomicUsize,
    cut: AtomicUsize,
}

impl TraceTree {
    pub(crate) const fn new() -> Self {
        Self {
            segments: [const { AtomicPtr::new(null_mut()) }; SEGMENTS],
            added: AtomicU32::new(0),
            stripes: [const {
                IndexStripe { index: AtomicUsize::new(0), lock: Lock::new(), used: AtomicUsize::new(0) }
            }; STRIPES],
            arena: Arena::new(),
            mapped: AtomicUsize::new(0),
            cut: AtomicUsize::new(0),
        }
    }

    /// Calls `each` for all locks, in the order in which a thread may take several of them.
    pub(crate) fn for_each_lock(&self, each: &mut dyn FnMut(&Lock)) {
        for stripe in &self.stripes {
            each(&stripe.lock);
        }
        each(self.arena.lock());
    }

    /// The bytes in nodes, the bytes that are mapped for nodes but unused, and the bytes of the index.
    pub(crate) fn bytes(&self) -> (usize, usize, usize) {
        let nodes = self.nodes();
        let used = nodes * size_of::<StackNode>();
        let segments = nodes.div_ceil(SEGMENT) * size_of::<[StackNode; SEGMENT]>();
        (used, segments - used, self.mapped.load(Ordering::Relaxed).saturating_sub(segments))
    }

    /// The number of nodes, including the root.
    pub(crate) fn nodes(&self) -> usize {
        (self.added.load(Ordering::Acquire) as usize + 1).min(TraceId::MAX as usize + 1)
    }

    /// The number of stacks that lost frames because the tree was full or memory was short.
    pub(crate) fn cut(&self) -> usize {
        self.cut.load(Ordering::Relaxed)
    }

    /// The node from which stacks of an epoch start. The node is not a frame. `None` if the epoch has no such node.
    pub(crate) fn root(&self, epoch: u32) -> Option<TraceId> {
        match epoch as usize {
            0 => Some(TraceId::NONE),
            epoch if epoch > MOST_EPOCHS => None,
            epoch => Some(self.child(TraceId::NONE, epoch)).filter(|root| *root != TraceId::NONE),
        }
    }

    /// Counts a block that gets no stack.
    pub(crate) fn note_cut(&self) {
        self.cut.fetch_add(1, Ordering::Relaxed);
    }

    /// The stack with one more frame inside of `parent`. Returns `parent` itself if the tree is full, or if memory is
    /// short.
    #[inline]
    pub(crate) fn child(&self, parent: TraceId, pc: usize) -> TraceId {
        match self.listed_child(parent, pc) {
            Some(id) => id,
            None => self.further_child(parent, pc),
        }
    }

    #[inline(always)]
    fn listed_child(&self, parent: TraceId, pc: usize) -> Option<TraceId> {
        let mut next = self.node(parent)?.first_child.load(Ordering::Acquire);
        while next != 0 {
            let child = self.node(TraceId(next))?;
            if child.pc.load(Ordering::Relaxed) == pc as u64 {
                return Some(TraceId(next));
            }
            next = child.next_sibling.load(Ordering::Relaxed);
        }
        None
    }

    #[inline(never)]
    fn further_child(&self, parent: TraceId, pc: usize) -> TraceId {
        let hash = hash(parent, pc);
        // All children of a node are in one stripe, and its lock also protects the list of children.
        let stripe = &self.stripes[parent.0 as usize % STRIPES];
        match look_up(NodeIndex(stripe.index.load(Ordering::Acquire)).slots(), hash, parent, pc) {
            Ok(id) => id,
            Err(_) => self.add(stripe, hash, parent, pc),
        }
    }

    #[cold]
    fn add(&self, stripe: &IndexStripe, hash: usize, parent: TraceId, pc: usize) -> TraceId {
        let _held = stripe.lock.hold();
        if let Some(id) = self.listed_child(parent, pc) {
            return id;
        }
        let listed = self.node(parent).map_or(0, StackNode::listed);
        if listed < LISTED {
            let Some(id) = self.new_node(parent, pc) else { return self.cut_at(parent) };
            // The root exists as soon as the first node exists.
            if let (Some(node), Some(parent)) = (self.node(id), self.node(parent)) {
                node.next_sibling.store(parent.first_child.load(Ordering::Relaxed), Ordering::Relaxed);
                parent.listed_and_change.fetch_add(1, Ordering::Relaxed);
                parent.first_child.store(id.0, Ordering::Release);
            }
            return id;
        }
        let Some(slots) = self.roomy_index(stripe) else { return self.cut_at(parent) };
        let slot = match look_up(slots, hash, parent, pc) {
            Ok(id) => return id,
            Err(slot) => slot,
        };
        let (Some(slot), Some(id)) = (slot, self.new_node(parent, pc)) else { return self.cut_at(parent) };
        slot.fill(pc as u64, parent.0, id.0);
        stripe.used.fetch_add(1, Ordering::Relaxed);
        id
    }

    fn cut_at(&self, parent: TraceId) -> TraceId {
        self.cut.fetch_add(1, Ordering::Relaxed);
        parent
    }

    fn new_node(&self, parent: TraceId, pc: usize) -> Option<TraceId> {
        let id = self.added.fetch_add(1, Ordering::Relaxed) + 1;
        if id > TraceId::MAX {
            self.added.store(TraceId::MAX, Ordering::Relaxed);
            return None;
        }
        let segment = &self.segments[id as usize / SEGMENT];
        if !memory::map_once(segment, &self.mapped) {
            return None;
        }
        let node = self.node(TraceId(id))?;
        node.parent.store(parent.0, Ordering::Relaxed);
        node.pc.store(pc as u64, Ordering::Release);
        seen_modules::note(pc, TraceId(id));
        Some(TraceId(id))
    }

    /// The stripe's slots. Doubles them when half of them are used.
    fn roomy_index(&self, stripe: &IndexStripe) -> Option<&'static [NodeSlot]> {
        let old = NodeIndex(stripe.index.load(Ordering::Acquire));
        if stripe.used.load(Ordering::Relaxed) < old.length() / 2 {
            return Some(old.slots());
        }
        let length = (old.length() * 2).max(FIRST_INDEX);
        let bytes = length * size_of::<NodeSlot>();
        let place = self.arena.take(bytes).expose_provenance();
        if place == 0 {
            return None;
        }
        self.mapped.fetch_add(bytes, Ordering::Relaxed);
        let fresh = NodeIndex(place | (length.trailing_zeros() as usize) << ADDRESS_BITS);
        for old in old.slots() {
            let (pc, link) = (old.pc.load(Ordering::Relaxed), old.link.load(Ordering::Relaxed));
            let (parent, id) = (TraceId((link >> 32) as u32), link as u32);
            if link != 0
                && let Err(Some(slot)) =
                    look_up(fresh.slots(), hash(parent, pc as usize), parent, pc as usize)
            {
                slot.fill(pc, parent.0, id);
            }
        }
        stripe.index.store(fresh.0, Ordering::Release);
        Some(fresh.slots())
    }

    /// The node of a stack; `None` for blocks without a stack. The caller must have a valid id.
    #[inline(always)]
    pub(super) fn counted_node(&self, id: TraceId) -> Option<&StackNode> {
        if id == TraceId::NONE { None } else { self.node(id) }
    }

    /// Calls `each` for every stack that has a change since the peak, with the number of the change.
    pub(crate) fn for_each_change(&self, mut each: impl FnMut(TraceId, u32)) {
        for id in (1..self.nodes() as u32).map(TraceId) {
            match self.node(id).map_or(0, StackNode::change) {
                0 => {}
                number => each(id, number),
            }
        }
    }

    #[inline]
    fn node(&self, id: TraceId) -> Option<&StackNode> {
        let segment = self.segments[id.0 as usize / SEGMENT].load(Ordering::Acquire);
        // SAFETY: the pointer is null or points to a segment of `new_node`, and the tree never unmaps one.
        let segment = unsafe { segment.as_ref() }?;
        Some(&segment[id.0 as usize % SEGMENT])
    }

    /// The parent and the return address of a node; `None` if no thread has made the node, or if it is not complete
    /// yet.
    pub(crate) fn entry(&self, id: TraceId) -> Option<(TraceId, usize)> {
        let node = self.node(id)?;
        let pc = node.pc.load(Ordering::Acquire);
        (pc != 0).then(|| (TraceId(node.parent.load(Ordering::Relaxed)), pc as usize))
    }

    /// The return addresses of a stack, innermost first.
    #[cfg(feature = "analyze")]
    pub(crate) fn frames(&self, id: TraceId) -> impl Iterator<Item = usize> {
        self.calls(id).map(|(_, pc)| pc)
    }

    /// For each frame of a stack, the stack that ends there and its return address, innermost first.
    pub(crate) fn calls(&self, mut id: TraceId) -> impl Iterator<Item = (TraceId, usize)> {
        core::iter::from_fn(move || {
            if id == TraceId::NONE {
                return None;
            }
            let node = self.node(id)?;
            let this = id;
            id = TraceId(node.parent.load(Ordering::Relaxed));
            let pc = node.pc.load(Ordering::Relaxed) as usize;
            (pc > MOST_EPOCHS).then_some((this, pc))
        })
    }
}

impl StackNode {
    fn listed(&self) -> u32 {
        self.listed_and_change.load(Ordering::Relaxed) & ((1 << LISTED_BITS) - 1)
    }

    /// The number of the stack's change since the peak; 0 if the stack has no change.
    #[inline(always)]
    pub(super) fn change(&self) -> u32 {
        self.listed_and_change.load(Ordering::Relaxed) >> LISTED_BITS
    }

    /// Sets the number of the change if the stack has no change yet. Returns the number of the stack's change, which
    /// may come from another thread that was faster.
    pub(super) fn set_change(&self, number: u32) -> u32 {
        let set = |word| (word >> LISTED_BITS == 0).then_some(word | number << LISTED_BITS);
        let known = self.listed_and_change.fetch_update(Ordering::Relaxed, Ordering::Relaxed, set);
        known.map_or_else(|word| word >> LISTED_BITS, |_| number)
    }
}

impl NodeSlot {
    fn fill(&self, pc: u64, parent: u32, id: u32) {
        self.pc.store(pc, Ordering::Relaxed);
        self.link.store(u64::from(parent) << 32 | u64::from(id), Ordering::Release);
    }
}

/// The id of the node, or the slot where the node belongs. The slot is `None` if there are no slots.
#[inline(always)]
fn look_up(
    slots: &[NodeSlot],
    hash: usize,
    parent: TraceId,
    pc: usize,
) -> Result<TraceId, Option<&NodeSlot>> {
    let mask = slots.len().wrapping_sub(1);
    let mut at = hash;
    while let Some(slot) = slots.get(at & mask) {
        let link = slot.link.load(Ordering::Acquire);
        if link == 0 {
            return Err(Some(slot));
        }
        if (link >> 32) as u32 == parent.0 && slot.pc.load(Ordering::Relaxed) == pc as u64 {
            return Ok(TraceId(link as u32));
        }
        at = at.wrapping_add(1);
    }
    Err(None)
}

#[inline(always)]
fn hash(parent: TraceId, pc: usize) -> usize {
    let mixed = (pc as u64 ^ u64::from(parent.0).rotate_left(40)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29) as usize
}
