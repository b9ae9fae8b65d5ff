//! The reading that builds a tree.

use crate::engine_abi::Marks;
use crate::measure::block::{Edge, WalkedBlock};
use crate::measure::reading::{Reading, SealedReading, WalkObserver};
use crate::measure::size_source::SizeSource;
use crate::measure::size_summary::SizeSummary;
use crate::measure::walk_state::WalkState;

use super::growth::{GrowingTree, NameFunction};

#[derive(Debug)]
pub(super) struct ByField {
    pub(super) sizes: SizeSource,
    pub(super) growth: GrowingTree,
    entered_from: Vec<u32>,
}

impl ByField {
    pub(super) fn new(type_name: NameFunction, state: WalkState, marks: Option<Marks>) -> Self {
        let sizes = SizeSource::best(marks, state);
        Self { sizes, growth: GrowingTree::new(type_name), entered_from: Vec::new() }
    }

    pub(super) fn computed(type_name: NameFunction) -> Self {
        Self { sizes: SizeSource::computed(), growth: GrowingTree::new(type_name), entered_from: Vec::new() }
    }

    /// Whether the source provides usable sizes, not only layouts.
    pub(super) fn usable_size_known(&self) -> bool {
        !self.sizes.is_computed()
    }
}

impl SealedReading for ByField {}

#[allow(unsafe_code, reason = "calls the declared allocator")]
impl WalkObserver for ByField {
    #[inline]
    unsafe fn block(&mut self, block: WalkedBlock) -> usize {
        let asked = block.layout.size();
        // With layouts only, a loop over blocks compiles to a plain sum.
        let usable = if self.sizes.is_computed() {
            asked
        } else {
            // SAFETY: the caller guarantees a live block of the global allocator with this layout.
            unsafe { self.sizes.block(block) }
        };
        self.growth.add(SizeSummary { asked, usable, blocks: 1 });
        usable
    }

    #[inline]
    fn enclosing(&mut self, block: WalkedBlock) -> usize {
        let asked = block.layout.size();
        let usable = if self.sizes.is_computed() { asked } else { self.sizes.enclosing(block) };
        self.growth.add(SizeSummary { asked, usable, blocks: 1 });
        usable
    }

    fn stated(&mut self, bytes: usize) -> usize {
        self.growth.add(SizeSummary { asked: bytes, usable: bytes, blocks: 0 });
        bytes
    }

    #[inline]
    fn state(&mut self) -> &mut WalkState {
        &mut self.sizes.state
    }

    #[inline]
    fn first_visit(&mut self, address: usize) -> bool {
        self.sizes.first_visit(address)
    }

    /// Called for parts below a `dyn` value. Like [`Reading::enter_part`], but stores the result in this reading.
    fn enter(&mut self, edge: Edge, type_name: NameFunction) {
        let from = self.growth.enter(edge, type_name);
        self.entered_from.push(from);
    }

    fn leave(&mut self) {
        if let Some(from) = self.entered_from.pop() {
            self.growth.leave(from);
        }
    }

    #[inline(always)]
    fn merged(&mut self, parts: u64) {
        self.growth.merged(parts);
    }
}

impl Reading for ByField {
    /// Plain data does not own a block, so the tree has no node for it.
    const NAMES: bool = false;
    const STEPS: bool = true;
    const MERGES: bool = true;

    #[inline(always)]
    fn enter_part(&mut self, edge: Edge, type_name: NameFunction) -> usize {
        self.growth.enter(edge, type_name) as usize
    }

    #[inline(always)]
    fn leave_part(&mut self, entered_from: usize) {
        self.growth.leave(entered_from as u32);
    }

    fn erase(&mut self) -> &mut dyn WalkObserver {
        self
    }
}
