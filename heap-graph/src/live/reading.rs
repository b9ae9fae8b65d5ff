//! The reading that makes nodes of blocks and edges of the fields between them.

use hashbrown::HashMap;
use memory_reporter::{Block, Edge, Measured, Observe, Reading, WalkState};

use super::{BlockTypes, LiveOptions};
use crate::coarse_type::CoarseType;
use crate::frame::{FrameId, FrameParts};
use crate::graph::{Graph, GraphBuilder, NodeId, NodeParts};
use crate::text::TextId;

type TypeName = fn() -> &'static str;

/// The root's id. Values told as roots have the next ones: no block is there.
const ROOT_ID: u64 = 1;

/// A way of fields from the start of a block or value to a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Way(u32);

impl Way {
    const EMPTY: Self = Self(0);
}

/// Where the walk is.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The block or value that edges start from.
    owner: u32,
    way: Way,
    type_name: TypeName,
}

/// What a block or value is; several have the same.
#[derive(Clone, Copy, Debug)]
struct Kind {
    type_name: TextId,
    class_name: Option<TextId>,
    coarse_type: CoarseType,
}

#[derive(Clone, Copy, Debug)]
struct Found {
    id: u64,
    size: u64,
    kind: u32,
    stack: Option<FrameId>,
}

/// Addresses that belong to a node: to find what references point into.
#[derive(Clone, Copy, Debug)]
struct Range {
    start: usize,
    end: usize,
    node: u32,
}

pub(super) struct Live<'a> {
    options: LiveOptions<'a>,
    measured: Option<Measured>,
    state: WalkState,
    builder: GraphBuilder,
    found: Vec<Found>,
    kinds: Vec<Kind>,
    /// By the types' names.
    kind_ids: HashMap<(&'static str, &'static str), u32>,
    /// From, to and name, in the order of the walk.
    edges: Vec<(u32, u32, Option<TextId>)>,
    here: Place,
    /// Where to go back to from parts and from blocks.
    before: Vec<Place>,
    /// The block told last, if nothing else was entered or left since.
    told: Option<u32>,
    /// By way and the edge that leads on.
    ways: HashMap<(Way, Edge), Way>,
    /// By way.
    way_names: Vec<Option<TextId>>,
    by_address: HashMap<usize, u32>,
    /// Shared blocks by the address they are known by.
    shared: HashMap<usize, u32>,
    /// A shared block that is to be told next.
    awaited: Option<usize>,
    /// References: from, name, and where they point to.
    pointers: Vec<(u32, Option<TextId>, usize)>,
    ranges: Vec<Range>,
    sites: HashMap<u64, Option<FrameId>>,
}

impl<'a> Live<'a> {
    pub(super) fn new(options: LiveOptions<'a>) -> Self {
        let nothing: TypeName = || "";
        let mut live = Self {
            options,
            measured: Measured::new(),
            state: WalkState::default(),
            builder: GraphBuilder::new(),
            found: Vec::new(),
            kinds: Vec::new(),
            kind_ids: HashMap::new(),
            edges: Vec::new(),
            here: Place { owner: 0, way: Way::EMPTY, type_name: nothing },
            before: Vec::new(),
            told: None,
            ways: HashMap::new(),
            way_names: vec![None],
            by_address: HashMap::new(),
            shared: HashMap::new(),
            awaited: None,
            pointers: Vec::new(),
            ranges: Vec::new(),
            sites: HashMap::new(),
        };
        let type_name = live.text("roots");
        live.kinds.push(Kind { type_name, class_name: None, coarse_type: CoarseType::Other });
        live.found.push(Found { id: ROOT_ID, size: 0, kind: 0, stack: None });
        live
    }

    fn text(&mut self, text: &str) -> TextId {
        self.builder.text(text).expect("a program has less than 2^32 names")
    }

    pub(super) fn open_root<T: ?Sized>(&mut self, name: &str, type_name: TypeName, value: &T) {
        let name = self.text(name);
        let kind = self.kind(BlockTypes { owner: type_name(), content: type_name() });
        let node = self.node(ROOT_ID + self.found.len() as u64, 0, kind, None);
        // Small ids may be taken by roots only, and these come in order.
        self.edges.push((0, node, Some(name)));
        let start = (&raw const *value).addr();
        self.ranges.push(Range { start, end: start + size_of_val(value), node });
        self.before.push(self.here);
        self.here = Place { owner: node, way: Way::EMPTY, type_name };
        self.told = None;
    }

    pub(super) fn close_root(&mut self) {
        self.back();
    }

    fn back(&mut self) {
        if let Some(before) = self.before.pop() {
            self.here = before;
        }
        self.told = None;
    }

    fn node(&mut self, id: u64, size: u64, kind: u32, stack: Option<FrameId>) -> u32 {
        let node = u32::try_from(self.found.len()).expect("a program has less than 2^32 blocks");
        self.found.push(Found { id, size, kind, stack });
        node
    }

    fn kind(&mut self, types: BlockTypes<'static>) -> u32 {
        if let Some(known) = self.kind_ids.get(&(types.owner, types.content)) {
            return *known;
        }
        let kind = Kind {
            type_name: self.text(types.type_name()),
            class_name: Some(self.text(types.class_name())),
            coarse_type: (self.options.coarse_type)(&types),
        };
        let class_name = kind.class_name.filter(|_| kind.coarse_type == CoarseType::Object);
        self.kinds.push(Kind { class_name, ..kind });
        let id = u32::try_from(self.kinds.len() - 1).expect("a program has less than 2^32 types");
        self.kind_ids.insert((types.owner, types.content), id);
        id
    }

    fn edge(&mut self, to: u32) {
        let name = self.way_names[self.here.way.0 as usize];
        self.edges.push((self.here.owner, to, name));
    }

    /// A block of this size that the walk has come to.
    fn tell(&mut self, block: Block, size: usize, start_is_known: bool) {
        let address = block.pointer.addr();
        let node = match self.by_address.get(&address) {
            // Reached by two roots: its contents are walked again, and found to be known.
            Some(known) => *known,
            None => {
                let owner = (self.here.type_name)();
                let kind = self.kind(BlockTypes { owner, content: (block.type_name)() });
                let stack = self.stack(address);
                let node = self.node(address as u64, size as u64, kind, stack);
                self.by_address.insert(address, node);
                let end = address + if start_is_known { block.layout.size() } else { 1 };
                self.ranges.push(Range { start: address, end, node });
                self.edge(node);
                node
            }
        };
        if let Some(shared) = self.awaited.take() {
            self.shared.insert(shared, node);
        }
        self.told = Some(node);
    }

    fn stack(&mut self, address: usize) -> Option<FrameId> {
        let sites = self.options.allocation_sites?;
        let site = sites.site(address)?;
        if let Some(known) = self.sites.get(&site) {
            return *known;
        }
        let mut youngest = None;
        for frame in sites.frames(site).into_iter().rev() {
            let source = self.text(&frame.source);
            let function = frame.function.as_ref().map(|function| self.text(function));
            let parts = FrameParts {
                parent: youngest,
                source,
                line: frame.line,
                column: frame.column,
                function,
                is_system: frame.is_system,
                is_self_hosted: false,
            };
            youngest = Some(self.builder.frame(parts).expect("a program has less than 2^32 frames"));
        }
        self.sites.insert(site, youngest);
        youngest
    }

    /// The way one step further.
    fn step(&mut self, edge: Edge) -> Way {
        let from = self.here.way;
        if let Some(known) = self.ways.get(&(from, edge)) {
            return *known;
        }
        let step = match edge {
            Edge::Field(field) => field.to_owned(),
            Edge::VariantField(variant, field) => format!("{variant}.{field}"),
            Edge::Key => "key".to_owned(),
            Edge::Value => "value".to_owned(),
            // Of a sequence; and whatever else there may be one day.
            _ => "element".to_owned(),
        };
        let name = match self.way_names[from.0 as usize] {
            Some(before) => format!("{}.{step}", self.builder.texts.get(before)),
            None => step,
        };
        let name = self.text(&name);
        self.way_names.push(Some(name));
        let way = Way(u32::try_from(self.way_names.len() - 1).expect("a program has less than 2^32 fields"));
        self.ways.insert((from, edge), way);
        way
    }

    pub(super) fn finish(mut self, now: Option<u64>) -> Graph {
        self.ranges.sort_unstable_by_key(|range| (range.start, range.end));
        for (from, name, address) in core::mem::take(&mut self.pointers) {
            let shared = self.shared.get(&address).copied();
            let target = shared.or_else(|| {
                let after = self.ranges.partition_point(|range| range.start <= address);
                let range = self.ranges.get(after.checked_sub(1)?)?;
                (address < range.end).then_some(range.node)
            });
            if let Some(target) = target {
                self.edges.push((from, target, name));
            }
        }
        self.edges.sort_by_key(|(from, ..)| *from);
        let mut builder = self.builder;
        builder.set_creation_time(now);
        let mut edges = self.edges.into_iter().peekable();
        for (place, found) in (0..).zip(&self.found) {
            let kind = self.kinds[found.kind as usize];
            let parts = NodeParts {
                coarse_type: kind.coarse_type,
                class_name: kind.class_name,
                allocation_stack: found.stack,
                ..NodeParts::new(NodeId(found.id), found.size, kind.type_name)
            };
            builder.node(parts).expect("counted when it was found");
            while let Some((_, to, name)) = edges.next_if(|(from, ..)| *from == place) {
                let to = NodeId(self.found[to as usize].id);
                builder.edge(to, name).expect("a program has less than 2^32 edges");
            }
        }
        builder.finish().expect("each block has its own address, and edges lead to blocks")
    }
}

#[allow(unsafe_code, reason = "the trait's method is unsafe; it is handed to the allocator's reading")]
impl Observe for Live<'_> {
    unsafe fn block(&mut self, block: Block) -> usize {
        let size = match &mut self.measured {
            // SAFETY: the caller promises a live block of the global allocator with this layout.
            Some(measured) => unsafe { measured.block(block) },
            None => block.layout.size(),
        };
        self.tell(block, size, true);
        size
    }

    fn enclosing(&mut self, block: Block) -> usize {
        let size = block.layout.size();
        self.tell(block, size, false);
        size
    }

    fn state(&mut self) -> &mut WalkState {
        &mut self.state
    }

    fn enter(&mut self, edge: Edge, type_name: TypeName) {
        self.before.push(self.here);
        self.here = Place { way: self.step(edge), type_name, ..self.here };
        self.told = None;
    }

    fn leave(&mut self) {
        self.back();
    }

    fn shared(&mut self, address: usize, is_first: bool) {
        if is_first {
            self.awaited = Some(address);
        } else if let Some(node) = self.shared.get(&address) {
            self.edge(*node);
        }
    }

    fn pointer(&mut self, address: usize) {
        let name = self.way_names[self.here.way.0 as usize];
        self.pointers.push((self.here.owner, name, address));
    }

    fn open_block(&mut self) {
        self.before.push(self.here);
        if let Some(owner) = self.told.take() {
            self.here.owner = owner;
            self.here.way = Way::EMPTY;
        }
    }

    fn close_block(&mut self) {
        self.back();
    }
}

impl Reading for Live<'_> {
    /// References own nothing, and are edges all the same.
    const NAMES: bool = true;
    /// The elements of a sequence have one name; plain ones then cost nothing.
    const MERGES: bool = true;

    fn erase(&mut self) -> &mut dyn Observe {
        self
    }
}
