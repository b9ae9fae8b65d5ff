//! Implements `Collector` for an arena of `gc-arena`.

use std::borrow::Cow;

use gc_arena::arena::{CollectionPhase, Root};
use gc_arena::{Arena, Collect, Rootable};

use super::collector::{Collector, CycleProgress};

/// A slice is [`Arena::cycle_debt`], so it stops at the end of a cycle. Between two cycles, an arena without debt is
/// idle.
impl<R> Collector for Arena<R>
where
    R: for<'a> Rootable<'a>,
    for<'a> Root<'a, R>: Collect<'a>,
{
    fn name(&self) -> Cow<'static, str> {
        "gc-arena".into()
    }

    fn slice(&mut self) -> CycleProgress {
        let sleeps = |arena: &Self| arena.collection_phase() == CollectionPhase::Sleeping;
        if sleeps(self) && self.metrics().allocation_debt() <= 0.0 {
            return CycleProgress::Idle;
        }
        self.cycle_debt();
        if sleeps(self) { CycleProgress::Finished } else { CycleProgress::Unfinished }
    }

    fn finish(&mut self) {
        self.finish_cycle();
    }
}
