//! Frames of return addresses of a running program, each looked up once.

use rustc_hash::FxHashMap;

use super::{Places, SymbolOptions, look_up};
use crate::dump::Module;
use crate::frame::Frame;
use crate::frames::{FrameId, Frames};

/// What return addresses of a running program stand for. Looked up when they are first asked for.
#[derive(Debug, Default)]
pub struct ResolvedFrames {
    frames: Frames,
    by_address: FxHashMap<usize, Box<[FrameId]>>,
}

impl ResolvedFrames {
    /// Whether an address was looked up before.
    pub fn has(&self, address: usize) -> bool {
        self.by_address.contains_key(&address)
    }

    /// Looks addresses up, each with the number of its module among `modules` and the offset in it, if any holds it.
    /// Opens the files of the modules: it costs more than all look-ups in them.
    pub fn look_up(
        &mut self,
        addresses: &[(usize, Option<(usize, u64)>)],
        modules: &[Module],
        options: &SymbolOptions,
    ) {
        let code = |place: &Option<(usize, u64)>| {
            place.and_then(|(module, offset)| Some((&*modules.get(module)?.path, offset)))
        };
        let mut places = Places::new();
        for (number, (_, place)) in addresses.iter().enumerate() {
            if let Some((module, offset)) = code(place) {
                places.entry(module.to_owned()).or_default().push((number as u32, offset));
            }
        }
        let (calls, _) = look_up(places, addresses.len(), Some(modules), None, options);
        for ((address, place), calls) in addresses.iter().zip(&calls) {
            let frames = match (code(place), &calls[..]) {
                (None, _) => Box::from([self.frames.add(&Frame::default())]),
                (Some((module, offset)), []) => {
                    let frame = Frame { module: Some(module), offset: Some(offset), ..Frame::default() };
                    Box::from([self.frames.add(&frame)])
                }
                (Some((module, offset)), calls) => {
                    calls.iter().map(|call| self.frames.add(&call.frame(module, offset))).collect()
                }
            };
            self.by_address.insert(*address, frames);
        }
    }

    /// The frames of an address, those of inlined calls first; none if it was not looked up.
    pub fn get(&self, address: usize) -> impl DoubleEndedIterator<Item = Frame<'_>> {
        self.by_address.get(&address).into_iter().flatten().map(|frame| self.frames.get(*frame))
    }
}
