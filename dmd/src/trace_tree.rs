//! All stacks, as one tree of calls: a stack is a node, named by four bytes, whose ancestors are its frames.
//!
//! Append-only. A node that is known is found without a lock; a new one takes one of many. Nodes are never
//! moved or removed, so that an id stays good for the life of the process. When the tree is full, a stack is
//! cut at its inner end, and counted.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::lock::Lock;
use crate::memory::{self, Arena};
use crate::table::MAX_TRACE;

/// A stack. [`TraceId::NONE`] is the empty one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TraceId(pub(crate) u32);

impl TraceId {
    pub(crate) const NONE: Self = Self(0);
}

struct Node {
    pc: AtomicU64,
    parent: AtomicU32,
}

const SEGMENT: usize = 1 << 14;
const SEGMENTS: usize = (MAX_TRACE as usize + 1) / SEGMENT;
const STRIPES: usize = 64;
const FIRST_INDEX: usize = 64;

/// An open-addressed table of node ids, 0 for none; at most half full. Never unmapped, since somebody may
/// be reading it when a larger one takes its place.
struct Index {
    /// Length less one, a power of two less one.
    mask: usize,
    ids: *const AtomicU32,
}

impl Index {
    fn bytes(length: usize) -> usize {
        size_of::<Self>() + length * size_of::<AtomicU32>()
    }

    #[inline]
    fn id(&self, at: usize) -> &AtomicU32 {
        // SAFETY: so many ids are there.
        let ids = unsafe { core::slice::from_raw_parts(self.ids, self.mask + 1) };
        &ids[at & self.mask]
    }
}

struct Stripe {
    lock: Lock,
    index: AtomicPtr<Index>,
    used: AtomicUsize,
}

pub(crate) struct TraceTree {
    segments: [AtomicPtr<[Node; SEGMENT]>; SEGMENTS],
    next: AtomicU32,
    stripes: [Stripe; STRIPES],
    arena: Arena,
    mapped: AtomicUsize,
    cut: AtomicUsize,
}

impl TraceTree {
    pub(crate) const fn new() -> Self {
        Self {
            segments: [const { AtomicPtr::new(null_mut()) }; SEGMENTS],
            next: AtomicU32::new(1),
            stripes: [const {
                Stripe { lock: Lock::new(), index: AtomicPtr::new(null_mut()), used: AtomicUsize::new(0) }
            }; STRIPES],
            arena: Arena::new(),
            mapped: AtomicUsize::new(0),
            cut: AtomicUsize::new(0),
        }
    }

    /// All locks, in the order in which they may be taken together.
    pub(crate) fn for_each_lock(&self, each: &mut dyn FnMut(&Lock)) {
        for stripe in &self.stripes {
            each(&stripe.lock);
        }
        each(self.arena.lock());
    }

    /// Bytes in nodes, bytes mapped for nodes but unused, and bytes of the index.
    pub(crate) fn bytes(&self) -> (usize, usize, usize) {
        let nodes = self.nodes();
        let used = nodes * size_of::<Node>();
        let segments = nodes.div_ceil(SEGMENT) * size_of::<[Node; SEGMENT]>();
        (used, segments - used, self.mapped.load(Ordering::Relaxed).saturating_sub(segments))
    }

    /// How many nodes there are, the root among them.
    pub(crate) fn nodes(&self) -> usize {
        (self.next.load(Ordering::Acquire) as usize).min(MAX_TRACE as usize + 1)
    }

    /// Stacks that were cut because the tree was full.
    pub(crate) fn cut(&self) -> usize {
        self.cut.load(Ordering::Relaxed)
    }

    /// The stack that goes one frame further in than `parent`; `parent` itself if the tree is full.
    #[inline]
    pub(crate) fn child(&self, parent: TraceId, pc: usize) -> TraceId {
        let hash = hash(parent, pc);
        let stripe = &self.stripes[hash >> (usize::BITS - 6) & (STRIPES - 1)];
        let index = stripe.index.load(Ordering::Acquire);
        // SAFETY: null, or an index that is never unmapped.
        if let Some(index) = unsafe { index.as_ref() }
            && let Ok(id) = self.look_up(index, hash, parent, pc)
        {
            return id;
        }
        self.add(stripe, hash, parent, pc)
    }

    /// The node's id, or where in the index it would go.
    #[inline]
    fn look_up(&self, index: &Index, hash: usize, parent: TraceId, pc: usize) -> Result<TraceId, usize> {
        let mut at = hash;
        loop {
            let id = index.id(at).load(Ordering::Acquire);
            if id == 0 {
                return Err(at);
            }
            if let Some(node) = self.node(TraceId(id))
                && node.pc.load(Ordering::Relaxed) == pc as u64
                && node.parent.load(Ordering::Relaxed) == parent.0
            {
                return Ok(TraceId(id));
            }
            at = at.wrapping_add(1);
        }
    }

    #[cold]
    fn add(&self, stripe: &Stripe, hash: usize, parent: TraceId, pc: usize) -> TraceId {
        let _held = stripe.lock.hold();
        let Some(index) = self.roomy_index(stripe) else { return self.cut_at(parent) };
        let at = match self.look_up(index, hash, parent, pc) {
            Ok(id) => return id,
            Err(at) => at,
        };
        let Some(id) = self.new_node(parent, pc) else { return self.cut_at(parent) };
        index.id(at).store(id.0, Ordering::Release);
        stripe.used.fetch_add(1, Ordering::Relaxed);
        id
    }

    fn cut_at(&self, parent: TraceId) -> TraceId {
        self.cut.fetch_add(1, Ordering::Relaxed);
        parent
    }

    fn new_node(&self, parent: TraceId, pc: usize) -> Option<TraceId> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        if id > MAX_TRACE {
            self.next.store(MAX_TRACE + 1, Ordering::Relaxed);
            return None;
        }
        let segment = &self.segments[id as usize / SEGMENT];
        if segment.load(Ordering::Acquire).is_null() {
            let bytes = size_of::<[Node; SEGMENT]>();
            let fresh = memory::map(bytes);
            if fresh.is_null() {
                return None;
            }
            if segment.compare_exchange(null_mut(), fresh.cast(), Ordering::AcqRel, Ordering::Acquire).is_ok()
            {
                self.mapped.fetch_add(bytes, Ordering::Relaxed);
            } else {
                // SAFETY: mapped above, and seen by nobody.
                unsafe { memory::unmap(fresh, bytes) };
            }
        }
        let node = self.node(TraceId(id))?;
        node.pc.store(pc as u64, Ordering::Relaxed);
        node.parent.store(parent.0, Ordering::Relaxed);
        Some(TraceId(id))
    }

    /// The stripe's index, made larger when half of it is used.
    fn roomy_index<'a>(&'a self, stripe: &'a Stripe) -> Option<&'a Index> {
        let old = stripe.index.load(Ordering::Acquire);
        // SAFETY: null, or an index that is never unmapped.
        let old = unsafe { old.as_ref() };
        let length = old.map_or(0, |old| old.mask + 1);
        if stripe.used.load(Ordering::Relaxed) < length / 2 {
            return old;
        }
        let length = (length * 2).max(FIRST_INDEX);
        let fresh = self.arena.take(Index::bytes(length)).cast::<Index>();
        if fresh.is_null() {
            return None;
        }
        self.mapped.fetch_add(Index::bytes(length), Ordering::Relaxed);
        let ids = fresh.wrapping_add(1).cast::<AtomicU32>().cast_const();
        // SAFETY: as many bytes as an index of this length takes, which nobody else has seen.
        unsafe { fresh.write(Index { mask: length - 1, ids }) };
        // SAFETY: written above, and never changed or unmapped.
        let index = unsafe { &*fresh };
        for at in 0..length / 2 {
            let Some(id) = old.map(|old| old.id(at).load(Ordering::Relaxed)).filter(|id| *id != 0) else {
                continue;
            };
            if let Some(node) = self.node(TraceId(id)) {
                let parent = TraceId(node.parent.load(Ordering::Relaxed));
                let pc = node.pc.load(Ordering::Relaxed) as usize;
                if let Err(at) = self.look_up(index, hash(parent, pc), parent, pc) {
                    index.id(at).store(id, Ordering::Relaxed);
                }
            }
        }
        stripe.index.store(fresh, Ordering::Release);
        Some(index)
    }

    #[inline]
    fn node(&self, id: TraceId) -> Option<&Node> {
        let segment = self.segments[id.0 as usize / SEGMENT].load(Ordering::Acquire);
        // SAFETY: null, or a segment that is never unmapped.
        let segment = unsafe { segment.as_ref() }?;
        Some(&segment[id.0 as usize % SEGMENT])
    }

    /// The return addresses of a stack, innermost first.
    pub(crate) fn frames(&self, mut id: TraceId) -> impl Iterator<Item = usize> {
        core::iter::from_fn(move || {
            if id == TraceId::NONE {
                return None;
            }
            let node = self.node(id)?;
            id = TraceId(node.parent.load(Ordering::Relaxed));
            Some(node.pc.load(Ordering::Relaxed) as usize)
        })
    }
}

#[inline]
fn hash(parent: TraceId, pc: usize) -> usize {
    let mixed = (pc as u64 ^ u64::from(parent.0).rotate_left(40)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29) as usize
}
