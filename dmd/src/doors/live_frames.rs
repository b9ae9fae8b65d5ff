//! Functions and lines of return addresses in this very process, each looked up once.

use std::sync::{Mutex, MutexGuard, TryLockError};

use dmd_analyze::Module;
use dmd_analyze::symbolize::{ResolvedFrames, SymbolOptions};
use rustc_hash::FxHashSet;

use crate::dump::modules::Modules;
use crate::tables::trace_id::TraceId;

/// All that have been looked up so far. A library that was unloaded and has another in its place is taken
/// for what it was.
static KNOWN: Mutex<Option<ResolvedFrames>> = Mutex::new(None);

/// What is known of return addresses. To be used inside the engine's guard: all that it allocates passes by
/// unrecorded.
pub(crate) struct LiveFrames {
    /// `None` while another thread has them, which after a fork may not be there any more.
    shared: Option<MutexGuard<'static, Option<ResolvedFrames>>>,
    /// In their place.
    new: ResolvedFrames,
}

impl LiveFrames {
    /// All that is known; or nothing, while another thread uses that.
    pub(crate) fn known() -> Self {
        let shared = match KNOWN.try_lock() {
            Ok(frames) => Some(frames),
            Err(TryLockError::Poisoned(frames)) => Some(frames.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        Self { shared, new: ResolvedFrames::default() }
    }

    /// The frames known so far.
    pub(crate) fn frames(&mut self) -> &mut ResolvedFrames {
        match &mut self.shared {
            Some(shared) => shared.get_or_insert_default(),
            None => &mut self.new,
        }
    }

    /// Looks up those return addresses that are not known yet.
    pub(crate) fn look_up(&mut self, asked: FxHashSet<usize>, modules: &Modules) {
        let frames = self.frames();
        let mut asked: Vec<usize> = asked.into_iter().filter(|pc| !frames.has(*pc)).collect();
        if asked.is_empty() {
            return;
        }
        asked.sort_unstable();
        // Whatever was last at this place.
        let last = TraceId(u32::MAX);
        let place = |pc: usize| {
            modules.find(last, pc).and_then(|module| modules.offset(module, pc).map(|at| (module, at)))
        };
        let places: Vec<_> = asked.into_iter().map(|pc| (pc, place(pc))).collect();
        let modules: Vec<Module> = modules
            .iter()
            .map(|module| Module {
                path: String::from_utf8_lossy(&module.path).into_owned(),
                build_id: module.build_id.clone(),
            })
            .collect();
        // On this thread only, which the engine's guard is for.
        frames.look_up(&places, &modules, &SymbolOptions::new().threads(1));
    }
}
