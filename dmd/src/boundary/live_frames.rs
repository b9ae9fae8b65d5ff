//! Functions and lines of return addresses in this process. Each address is looked up once.

use std::sync::{Mutex, MutexGuard, TryLockError};

use dmd_analyze::LoadedModule;
use dmd_analyze::symbolize::{ResolvedFrames, SymbolOptions};
use rustc_hash::FxHashSet;

use crate::dump::modules::DumpModules;
use crate::tables::trace_id::TraceId;

/// All frames that were looked up so far. If another library is loaded at the place of an unloaded library, addresses
/// there keep the frames of the unloaded library.
static KNOWN: Mutex<Option<ResolvedFrames>> = Mutex::new(None);

/// The known frames of return addresses. Callers are inside the engine's guard, so that the engine does not record
/// allocations made here.
pub(crate) struct LiveFrames {
    /// `None` if another thread uses the frames. A wait for it might never end: after a fork, that thread may not exist
    /// in the child.
    shared: Option<MutexGuard<'static, Option<ResolvedFrames>>>,
    /// Used if `shared` is `None`.
    new: ResolvedFrames,
}

impl LiveFrames {
    /// All known frames; empty while another thread uses them.
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

    /// Looks up the return addresses that are not known yet.
    pub(crate) fn look_up(&mut self, asked: FxHashSet<usize>, modules: &DumpModules) {
        let frames = self.frames();
        let mut asked: Vec<usize> = asked.into_iter().filter(|pc| !frames.has(*pc)).collect();
        if asked.is_empty() {
            return;
        }
        asked.sort_unstable();
        // With the largest node, `find` returns the last of several modules that were loaded at the same place.
        let last = TraceId(u32::MAX);
        let place = |pc: usize| {
            modules.find(last, pc).and_then(|module| modules.offset(module, pc).map(|at| (module, at)))
        };
        let places: Vec<_> = asked.into_iter().map(|pc| (pc, place(pc))).collect();
        let modules: Vec<LoadedModule> = modules
            .iter()
            .map(|module| LoadedModule {
                path: String::from_utf8_lossy(&module.path).into_owned(),
                build_id: module.build_id.clone(),
                bias: Some(module.bias as u64),
                has_file_offsets: false,
            })
            .collect();
        // The look-up must stay on this thread, because the engine's guard protects only this thread. The look-up
        // reads no source files, since it runs inside the measured program.
        frames.look_up(&places, &modules, &SymbolOptions::new().threads(1).sources(false));
    }
}
