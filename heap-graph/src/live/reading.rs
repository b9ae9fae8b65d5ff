//! The reading that turns blocks into nodes, and the fields between blocks into edges.

use memory_reporter::__private::SealedReading;
use memory_reporter::{
    Reading,
    measure::{Edge, MeasuredReading, WalkObserver, WalkState, WalkedBlock},
};

use super::descriptions::NodeDescriptions;
use super::field_path::{FieldPath, FieldPaths};
use super::found_node::{FoundNode, root_id};
use super::naming::BlockTypes;
use super::nodes::{BlockKey, ReferenceTargets, WalkNodes};
use super::options::LiveGraphOptions;
use super::sink::GraphSink;

type TypeNameFn = fn() -> &'static str;

/// Blocks have at least this address: systems keep the first 64 KiB free. A walk passes a lower address if it has no
/// access to the block: null, or the address of a value of size 0.
const LOWEST_ADDRESS: usize = 1 << 16;

/// The current position of the walk.
#[derive(Clone, Copy, Debug)]
struct WalkPlace {
    /// The block or value from which edges start.
    owner: u32,
    /// Whether the walk meets the owner for the first time. Otherwise the owner's edges are already recorded.
    is_new: bool,
    path: FieldPath,
    type_name: TypeNameFn,
    /// The owner's address.
    start: usize,
    /// The number of blocks at unknown addresses that the owner has had so far.
    hidden: u32,
}

/// A reading with names. It passes nodes and edges to a sink.
pub(super) struct LiveReading<'a, S> {
    measured: Option<MeasuredReading>,
    state: WalkState,
    sink: S,
    descriptions: NodeDescriptions<'a>,
    nodes: WalkNodes,
    /// The number of roots so far.
    roots: u64,
    paths: FieldPaths,
    here: WalkPlace,
    /// The positions around the current one, for returning from parts and blocks.
    before: Vec<WalkPlace>,
    /// The block that the walk met last, and whether it was new. `None` after the walk has entered or left a part.
    last: Option<(u32, bool)>,
    /// The address of the shared block that the walk should visit next.
    awaited: Option<usize>,
}

impl<'a, S: GraphSink> LiveReading<'a, S> {
    /// A reading for a new walk.
    pub(super) fn new(
        options: LiveGraphOptions<'a>,
        sink: impl FnOnce(&mut NodeDescriptions<'a>) -> S,
    ) -> Self {
        let mut descriptions = NodeDescriptions::new(options);
        let sink = sink(&mut descriptions);
        let type_name: TypeNameFn = || "";
        Self {
            measured: MeasuredReading::new(),
            state: WalkState::default(),
            sink,
            descriptions,
            nodes: WalkNodes::new(),
            roots: 0,
            paths: FieldPaths::new(),
            here: WalkPlace {
                owner: 0,
                is_new: true,
                path: FieldPath::EMPTY,
                type_name,
                start: 0,
                hidden: 0,
            },
            before: Vec::new(),
            last: None,
            awaited: None,
        }
    }

    pub(super) fn sink(&self) -> &S {
        &self.sink
    }

    /// The number of roots so far.
    pub(super) fn roots(&self) -> u64 {
        self.roots
    }

    /// Starts a root of the program.
    pub(super) fn open_root<T: ?Sized>(&mut self, name: &str, type_name: TypeNameFn, value: &T) {
        self.settle();
        let name = self.descriptions.text(name);
        let kind = self.descriptions.kind(BlockTypes { owner: type_name(), content: type_name() });
        let node = self.add(FoundNode { id: root_id(self.roots), size: 0, kind, stack: None });
        self.roots += 1;
        self.sink.edge(0, node, Some(name), &self.nodes);
        self.sink.open();
        let start = (&raw const *value).addr();
        self.nodes.occupies(node, start, size_of_val(value));
        self.before.push(self.here);
        self.here =
            WalkPlace { owner: node, is_new: true, path: FieldPath::EMPTY, type_name, start, hidden: 0 };
    }

    /// Ends the last root, and everything in it that a panic has left open.
    pub(super) fn close_root(&mut self) {
        self.awaited = None;
        self.settle();
        if let Some(outside) = self.before.drain(..).next() {
            self.here = outside;
        }
        self.sink.close_all(&self.descriptions);
    }

    /// Ends the walk.
    pub(super) fn finish(self) -> (S, NodeDescriptions<'a>, ReferenceTargets) {
        (self.sink, self.descriptions, self.nodes.finish())
    }

    /// Records that the walk does not enter the block that it met last.
    fn settle(&mut self) {
        self.last = None;
        self.sink.settle(&self.descriptions);
    }

    fn back(&mut self) {
        self.settle();
        if let Some(before) = self.before.pop() {
            let hidden = if before.owner == self.here.owner { self.here.hidden } else { before.hidden };
            self.here = WalkPlace { hidden, ..before };
        }
    }

    fn add(&mut self, found: FoundNode) -> u32 {
        let node = self.nodes.add(found.id);
        self.sink.node(node, found);
        node
    }

    fn edge(&mut self, to: u32) {
        if self.here.is_new {
            let name = self.paths.name(self.here.path);
            self.sink.edge(self.here.owner, to, name, &self.nodes);
        }
    }

    fn key(&mut self, address: usize) -> BlockKey {
        if address >= LOWEST_ADDRESS {
            return BlockKey::At(address);
        }
        let WalkPlace { start, path, hidden, .. } = self.here;
        self.here.hidden += 1;
        BlockKey::Hidden(start, path, hidden)
    }

    /// Handles a block of `size` bytes that the walk meets. At least `extent` bytes from its pointer are inside the
    /// block.
    fn meet(&mut self, block: WalkedBlock, size: usize, extent: usize) {
        self.settle();
        let key = self.key(block.pointer.addr());
        let known = self.nodes.find(key);
        let node = known.unwrap_or_else(|| {
            let owner = (self.here.type_name)();
            let kind = self.descriptions.kind(BlockTypes { owner, content: (block.type_name)() });
            let id = self.nodes.new_id(key);
            let stack = match key {
                BlockKey::At(address) => self.descriptions.stack(address),
                BlockKey::Hidden(..) => None,
            };
            let node = self.add(FoundNode { id, size: size as u64, kind, stack });
            self.nodes.set(key, node);
            if let BlockKey::At(address) = key {
                self.nodes.occupies(node, address, extent);
            }
            node
        });
        self.edge(node);
        if let Some(shared) = self.awaited.take() {
            self.nodes.set_shared(shared, node);
        }
        self.last = Some((node, known.is_none()));
    }
}

impl<S: GraphSink> SealedReading for LiveReading<'_, S> {}

#[allow(
    unsafe_code,
    reason = "the trait's method is unsafe; this method passes the block to the allocator's reading"
)]
impl<S: GraphSink> WalkObserver for LiveReading<'_, S> {
    unsafe fn block(&mut self, block: WalkedBlock) -> usize {
        let size = match &mut self.measured {
            // SAFETY: `MeasuredReading::block` requires the start of a live block of the global allocator, allocated
            // with `block.layout`. This method has the same contract, and so has its caller `MallocSizeOfOps::block`.
            // The `MallocSizeOf` impl that passes the block to that caller fulfills the contract.
            Some(measured) => unsafe { measured.block(block) },
            None => block.layout.size(),
        };
        self.meet(block, size, block.layout.size());
        size
    }

    fn enclosing(&mut self, block: WalkedBlock) -> usize {
        let size = match &mut self.measured {
            Some(measured) => measured.enclosing(block),
            None => block.layout.size(),
        };
        self.meet(block, size, 1);
        size
    }

    fn state(&mut self) -> &mut WalkState {
        &mut self.state
    }

    fn enter(&mut self, edge: Edge, type_name: TypeNameFn) {
        self.settle();
        self.before.push(self.here);
        let path = self.paths.step(self.here.path, edge, &mut self.descriptions);
        self.here = WalkPlace { path, type_name, ..self.here };
    }

    fn leave(&mut self) {
        self.back();
    }

    fn shared(&mut self, address: usize, is_first: bool) {
        if is_first {
            self.awaited = Some(address);
        } else if let Some(node) = self.nodes.shared(address) {
            self.edge(node);
        }
    }

    fn pointer(&mut self, address: usize) {
        if self.here.is_new {
            let name = self.paths.name(self.here.path);
            self.sink.pointer(self.here.owner, address, name, &self.nodes);
        }
    }

    fn open_block(&mut self) {
        self.before.push(self.here);
        if let Some((owner, is_new)) = self.last.take() {
            let start = self.nodes.id(owner).0 as usize;
            self.here = WalkPlace { owner, is_new, path: FieldPath::EMPTY, start, hidden: 0, ..self.here };
        }
        self.sink.open();
    }

    fn close_block(&mut self) {
        self.back();
        self.sink.close(&self.descriptions);
    }
}

impl<S: GraphSink> Reading for LiveReading<'_, S> {
    /// References own no heap, but they are edges of the graph.
    const NAMES: bool = true;
    /// All elements of a sequence have the same name, so the walk need not visit plain elements.
    const MERGES: bool = true;

    fn erase(&mut self) -> &mut dyn WalkObserver {
        self
    }
}
