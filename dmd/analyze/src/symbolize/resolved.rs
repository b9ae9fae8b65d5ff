//! Frames for the return addresses of a running program. Each address is looked up once.

use rustc_hash::FxHashMap;

use super::{ModulePlaces, SymbolOptions, look_up};
use crate::dump::{CallFrame, CallId, CallTable, LoadedModule};

/// The frames of return addresses of a running program.
#[derive(Debug, Default)]
pub struct ResolvedFrames {
    frames: CallTable,
    /// The frames of all addresses, one address after the other.
    calls: Vec<CallId>,
    /// For each address, the start and the end of its frames in `calls`.
    by_address: FxHashMap<usize, (u32, u32)>,
}

impl ResolvedFrames {
    /// Whether an address was already looked up.
    pub fn has(&self, address: usize) -> bool {
        self.by_address.contains_key(&address)
    }

    /// Looks up addresses. Each address comes with the index of its module in `modules` and the offset in this module,
    /// or with `None` if no module contains the address. Each call of this function opens the files of the modules.
    /// This takes longer than all look-ups in the files.
    pub fn look_up(
        &mut self,
        addresses: &[(usize, Option<(usize, u64)>)],
        modules: &[LoadedModule],
        options: &SymbolOptions,
    ) {
        let code = |place: &Option<(usize, u64)>| {
            place.and_then(|(module, offset)| Some((&*modules.get(module)?.path, offset)))
        };
        let mut places = ModulePlaces::new();
        for (number, (_, place)) in addresses.iter().enumerate() {
            if let Some((module, offset)) = code(place) {
                places.entry(module.to_owned()).or_default().push((number as u32, offset));
            }
        }
        let (calls, _) = look_up(places, addresses.len(), Some(modules), None, options);
        for ((address, place), calls) in addresses.iter().zip(&calls) {
            let start = self.calls.len() as u32;
            match (code(place), &calls[..]) {
                (None, _) => self.calls.push(self.frames.add(&CallFrame::default())),
                (Some((module, offset)), []) => {
                    let frame =
                        CallFrame { module: Some(module), offset: Some(offset), ..CallFrame::default() };
                    self.calls.push(self.frames.add(&frame));
                }
                (Some((module, offset)), calls) => {
                    self.calls.extend(calls.iter().map(|call| self.frames.add(&call.frame(module, offset))));
                }
            }
            self.by_address.insert(*address, (start, self.calls.len() as u32));
        }
        // The frames stay in the memory of the measured program.
        self.frames.shrink_to_fit();
        self.calls.shrink_to_fit();
        self.by_address.shrink_to_fit();
    }

    /// The frames of an address, inlined calls first. Empty if the address was not looked up.
    pub fn get(&self, address: usize) -> impl DoubleEndedIterator<Item = CallFrame<'_>> {
        let (start, end) = self.by_address.get(&address).copied().unwrap_or_default();
        self.calls[start as usize..end as usize].iter().map(|frame| self.frames.get(*frame))
    }
}
