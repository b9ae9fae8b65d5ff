//! The tree of calls of a recording, and its modules. The stacks of a dump are made from them.

use dmd_format::Mode;
use dmd_format::recording::{FIRST_PC, RecordedModule as Mapping, StackNode};
use rustc_hash::FxHashMap;

use super::event::NO_STACK;
use crate::dump::{BlockContents, CallId, Dump, DumpBlock, DumpTraceId, LoadedModule};
use crate::error::AnalyzeError;

/// The maximum number of frames of a stack. The engine records at most 256.
const MAX_FRAMES: usize = 512;

/// The calls by number, and the modules.
#[derive(Debug, Default)]
pub(crate) struct CallTree {
    /// The caller's number and the return address of each call. Number 0 is unused.
    nodes: Vec<(u32, u64)>,
    /// The number of calls in the file.
    known: usize,
    modules: Vec<Mapping>,
    /// The indices of the modules that are still loaded, sorted by address.
    loaded: Vec<usize>,
    max_frames: usize,
}

/// Equal blocks of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct EqualBlocks {
    pub(crate) stack: u32,
    pub(crate) requested: u64,
    pub(crate) slop: u64,
}

impl CallTree {
    pub(crate) fn new() -> Self {
        Self {
            nodes: vec![(0, 0)],
            known: 0,
            modules: Vec::new(),
            loaded: Vec::new(),
            max_frames: MAX_FRAMES,
        }
    }

    /// The number of calls.
    pub(crate) fn len(&self) -> usize {
        self.known
    }

    /// One more than the highest number of a call.
    pub(crate) fn end(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn set_max_frames(&mut self, frames: u64) {
        if frames > 0 {
            self.max_frames = usize::try_from(frames).unwrap_or(MAX_FRAMES).min(MAX_FRAMES);
        }
    }

    pub(crate) fn add(&mut self, node: StackNode) {
        let at = node.id as usize;
        if at >= self.nodes.len() {
            self.nodes.resize(at + 1, (0, 0));
        }
        if at > 0 {
            self.known += usize::from(self.nodes[at] == (0, 0));
            self.nodes[at] = (node.parent, node.pc);
        }
    }

    /// Replaces the modules.
    pub(crate) fn set_modules(&mut self, modules: Vec<Mapping>) {
        self.modules = modules;
        self.loaded =
            (0..self.modules.len()).filter(|at| self.modules[*at].unloaded_since.is_none()).collect();
        self.loaded.sort_by_key(|at| self.modules[*at].start);
    }

    /// The module of a call: the loaded module that contains the address. If there is no such module, the first
    /// unloaded module that contains the address, and whose `unloaded_since` is not after the call.
    fn module(&self, node: u32, pc: u64) -> Option<usize> {
        let holds = |at: &usize| (self.modules[*at].start..self.modules[*at].end).contains(&pc);
        let before = self.loaded.partition_point(|at| self.modules[*at].start <= pc);
        let now = before.checked_sub(1).map(|at| self.loaded[at]).filter(holds);
        now.or_else(|| {
            let is_older = |at: &usize| self.modules[*at].unloaded_since.is_some_and(|since| since <= node);
            (0..self.modules.len()).find(|at| is_older(at) && holds(at))
        })
    }

    /// Makes a dump of these blocks. `max_entries` is the maximum number of its blocks, traces and frames.
    pub(crate) fn dump(
        &self,
        blocks: impl IntoIterator<Item = (EqualBlocks, u64)>,
        max_entries: usize,
    ) -> Result<Dump, AnalyzeError> {
        self.dump_of(Mode::Live, blocks.into_iter().map(|(kind, num)| (None, kind, num)), max_entries)
    }

    /// Makes a dump of mode scan with the blocks at these addresses, without contents. `max_entries` is the maximum
    /// number of its blocks, traces and frames.
    pub(crate) fn scan(
        &self,
        blocks: impl IntoIterator<Item = (u64, EqualBlocks)>,
        max_entries: usize,
    ) -> Result<Dump, AnalyzeError> {
        self.dump_of(
            Mode::Scan,
            blocks.into_iter().map(|(address, kind)| (Some(address), kind, 1)),
            max_entries,
        )
    }

    fn dump_of(
        &self,
        mode: Mode,
        blocks: impl Iterator<Item = (Option<u64>, EqualBlocks, u64)>,
        max_entries: usize,
    ) -> Result<Dump, AnalyzeError> {
        let mut traces = TraceBuilder { tree: self, dump: Dump::empty(mode), of_stack: FxHashMap::default() };
        let mut places = CallPlaces::default();
        for (address, kind, num) in blocks {
            let alloc = traces.trace(kind.stack, &mut places);
            let dump = &mut traces.dump;
            dump.scanned.extend(address.map(|addr| BlockContents { addr, words: 0..0, text: None }));
            dump.blocks.push(DumpBlock {
                swapped: 0,
                untouched: 0,
                req: kind.requested,
                slop: kind.slop,
                num,
                alloc,
                reps: [DumpTraceId::NONE; 2],
                reporters: [u32::MAX; 2],
                sampled: false,
                weight: 1.0,
            });
            let entries =
                dump.blocks.len() + 2 * (dump.traces.len() + dump.frames.len()) + dump.calls.len() / 8;
            if entries > max_entries {
                return Err(AnalyzeError::TooManyEntries(max_entries));
            }
        }
        let mut dump = traces.dump;
        let module = |mapping: &Mapping| LoadedModule {
            path: path(mapping),
            build_id: mapping.build_id.clone(),
            bias: Some(mapping.bias),
            has_file_offsets: false,
        };
        dump.modules = Some(self.modules.iter().map(module).collect());
        dump.measurements.counts = [dump.blocks.len(), dump.traces.len(), dump.frames.len()];
        Ok(dump)
    }
}

fn path(mapping: &Mapping) -> String {
    String::from_utf8_lossy(&mapping.path).into_owned()
}

/// The frames by address and module.
type CallPlaces = FxHashMap<(u64, Option<usize>), CallId>;

/// A dump while traces are added to it.
struct TraceBuilder<'t> {
    tree: &'t CallTree,
    dump: Dump,
    of_stack: FxHashMap<u32, DumpTraceId>,
}

impl TraceBuilder<'_> {
    fn trace(&mut self, stack: u32, places: &mut CallPlaces) -> DumpTraceId {
        let tree = self.tree;
        if stack == NO_STACK || stack as usize >= tree.nodes.len() {
            return DumpTraceId::NONE;
        }
        if let Some(known) = self.of_stack.get(&stack) {
            return *known;
        }
        let dump = &mut self.dump;
        let start = dump.calls.len();
        let mut at = stack;
        // A damaged tree may contain a cycle.
        for _ in 0..2 * MAX_FRAMES {
            let Some((parent, return_address)) = tree.nodes.get(at as usize).filter(|_| at != NO_STACK)
            else {
                break;
            };
            if *return_address >= FIRST_PC {
                // The call instruction is before its return address.
                let pc = return_address - 1;
                let module = tree.module(at, pc);
                let frame = *places.entry((pc, module)).or_insert_with(|| match module {
                    None => dump.frames.read("#00: ??? (???:???)"),
                    Some(module) => {
                        let mapping = &tree.modules[module];
                        let offset = pc.wrapping_sub(mapping.bias);
                        dump.frames.read(&format!("#00: ???[{} +0x{offset:x}]", path(mapping)))
                    }
                });
                dump.calls.push(frame);
            }
            if dump.calls.len() - start >= tree.max_frames {
                break;
            }
            at = *parent;
        }
        let id = DumpTraceId(dump.traces.len() as u32);
        dump.traces.push(start as u32..dump.calls.len() as u32);
        self.of_stack.insert(stack, id);
        id
    }
}
