//! The reading that makes nodes of blocks and edges of the fields between them.

use std::io;

use hashbrown::HashMap;
use memory_reporter::{Block, Edge, Measured, Observe, Reading, WalkState};

use super::stream::{Context, Stream};
use super::{AllocationSites, BlockTypes, LiveOptions};
use crate::coarse_type::CoarseType;
use crate::frame::{FrameId, FrameParts};
use crate::graph::{Graph, GraphBuilder, NodeId, NodeParts};
use crate::text::TextId;

type TypeName = fn() -> &'static str;

/// The root's id. Values told as roots have the next ones, in order: no block is there.
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
    /// Whether it was not met before: else its edges are known.
    is_new: bool,
    way: Way,
    type_name: TypeName,
}

/// What a block or value is; several have the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    type_name: TextId,
    class_name: Option<TextId>,
    coarse_type: CoarseType,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) id: u64,
    pub(super) size: u64,
    kind: u32,
    stack: Option<FrameId>,
}

impl Found {
    pub(super) fn parts(&self, kinds: &[Kind]) -> NodeParts {
        let kind = kinds[self.kind as usize];
        NodeParts {
            coarse_type: kind.coarse_type,
            class_name: kind.class_name,
            allocation_stack: self.stack,
            ..NodeParts::new(NodeId(self.id), self.size, kind.type_name)
        }
    }
}

/// Where nodes and edges go.
enum Out<'a> {
    /// Into memory, to be a graph.
    Graph {
        found: Vec<Found>,
        /// From, to and name, in the order of the walk.
        edges: Vec<(u32, u32, Option<TextId>)>,
        /// References: from, name, and where they point to.
        pointers: Vec<(u32, Option<TextId>, usize)>,
    },
    File(Box<Stream<'a>>),
}

/// Addresses that belong to a node: to find what references point into.
#[derive(Clone, Copy, Debug)]
struct Range {
    start: usize,
    end: usize,
    node: u32,
}

pub(super) struct Live<'a> {
    coarse_type: fn(&BlockTypes<'_>) -> CoarseType,
    allocation_sites: Option<&'a dyn AllocationSites>,
    measured: Option<Measured>,
    state: WalkState,
    builder: GraphBuilder,
    out: Out<'a>,
    /// By node.
    ids: Vec<u64>,
    /// Values told as roots.
    roots: u64,
    kinds: Vec<Kind>,
    /// By the types' names.
    kind_ids: HashMap<(&'static str, &'static str), u32>,
    here: Place,
    /// Where to go back to from parts and from blocks.
    before: Vec<Place>,
    /// The block told last and whether it is new, if nothing else was entered or left since.
    told: Option<(u32, bool)>,
    /// By way and the edge that leads on.
    ways: HashMap<(Way, Edge), Way>,
    /// By way.
    way_names: Vec<Option<TextId>>,
    by_address: HashMap<usize, u32>,
    /// Shared blocks by the address they are known by.
    shared: HashMap<usize, u32>,
    /// A shared block that is to be told next.
    awaited: Option<usize>,
    ranges: Vec<Range>,
    sites: HashMap<u64, Option<FrameId>>,
}

impl<'a> Live<'a> {
    /// To collect a graph.
    pub(super) fn new(options: LiveOptions<'a>) -> Self {
        let out = Out::Graph { found: Vec::new(), edges: Vec::new(), pointers: Vec::new() };
        let mut live = Self::with_out(options, out);
        let root = live.root();
        if let Out::Graph { found, .. } = &mut live.out {
            found.push(root);
        }
        live
    }

    /// To write a file, with roots of these names.
    pub(super) fn writing(options: LiveOptions<'a>, stream: Stream<'a>, names: &[String]) -> Self {
        let mut live = Self::with_out(options, Out::File(Box::new(stream)));
        let root = live.root();
        let edges = (0..).zip(names).map(|(place, name)| (NodeId(root_id(place)), Some(live.text(name))));
        let edges = edges.collect();
        let Self { out, builder, kinds, .. } = &mut live;
        if let Out::File(stream) = out {
            stream.root(root, edges, Context { builder, kinds });
        }
        live
    }

    fn root(&mut self) -> Found {
        let type_name = self.text("roots");
        self.kinds.push(Kind { type_name, class_name: None, coarse_type: CoarseType::Other });
        self.ids.push(ROOT_ID);
        Found { id: ROOT_ID, size: 0, kind: 0, stack: None }
    }

    fn with_out(options: LiveOptions<'a>, out: Out<'a>) -> Self {
        let nothing: TypeName = || "";
        Self {
            coarse_type: options.coarse_type,
            allocation_sites: options.sites(),
            measured: Measured::new(),
            state: WalkState::default(),
            builder: GraphBuilder::new(),
            out,
            ids: Vec::new(),
            roots: 0,
            kinds: Vec::new(),
            kind_ids: HashMap::new(),
            here: Place { owner: 0, is_new: true, way: Way::EMPTY, type_name: nothing },
            before: Vec::new(),
            told: None,
            ways: HashMap::new(),
            way_names: vec![None],
            by_address: HashMap::new(),
            shared: HashMap::new(),
            awaited: None,
            ranges: Vec::new(),
            sites: HashMap::new(),
        }
    }

    /// What was told last will not be opened.
    fn settle(&mut self) {
        self.told = None;
        let Self { out, builder, kinds, .. } = self;
        if let Out::File(stream) = out {
            stream.settle(Context { builder, kinds });
        }
    }

    fn text(&mut self, text: &str) -> TextId {
        self.builder.text(text).expect("a program has less than 2^32 names")
    }

    pub(super) fn open_root<T: ?Sized>(&mut self, name: &str, type_name: TypeName, value: &T) {
        self.settle();
        let name = self.text(name);
        let kind = self.kind(BlockTypes { owner: type_name(), content: type_name() });
        let node = self.node(root_id(self.roots), 0, kind, None);
        self.roots += 1;
        match &mut self.out {
            Out::Graph { edges, .. } => edges.push((0, node, Some(name))),
            Out::File(stream) => stream.open(),
        }
        let start = (&raw const *value).addr();
        self.ranges.push(Range { start, end: start + size_of_val(value), node });
        self.before.push(self.here);
        self.here = Place { owner: node, is_new: true, way: Way::EMPTY, type_name };
    }

    /// Ends the value told last, and what of it a panic has left open.
    pub(super) fn close_root(&mut self) {
        self.awaited = None;
        self.settle();
        if let Some(outside) = self.before.drain(..).next() {
            self.here = outside;
        }
        let Self { out, builder, kinds, .. } = self;
        if let Out::File(stream) = out {
            stream.close_all(Context { builder, kinds });
        }
    }

    fn close(&mut self) {
        self.back();
        let Self { out, builder, kinds, .. } = self;
        if let Out::File(stream) = out {
            stream.close(Context { builder, kinds });
        }
    }

    fn back(&mut self) {
        self.settle();
        if let Some(before) = self.before.pop() {
            self.here = before;
        }
    }

    fn node(&mut self, id: u64, size: u64, kind: u32, stack: Option<FrameId>) -> u32 {
        let node = u32::try_from(self.ids.len()).expect("a program has less than 2^32 blocks");
        self.ids.push(id);
        let told = Found { id, size, kind, stack };
        match &mut self.out {
            Out::Graph { found, .. } => found.push(told),
            Out::File(stream) => stream.tell(node, told),
        }
        node
    }

    fn kind(&mut self, types: BlockTypes<'static>) -> u32 {
        if let Some(known) = self.kind_ids.get(&(types.owner, types.content)) {
            return *known;
        }
        let kind = Kind {
            type_name: self.text(types.type_name()),
            class_name: Some(self.text(types.class_name())),
            coarse_type: (self.coarse_type)(&types),
        };
        let class_name = kind.class_name.filter(|_| kind.coarse_type == CoarseType::Object);
        self.kinds.push(Kind { class_name, ..kind });
        let id = u32::try_from(self.kinds.len() - 1).expect("a program has less than 2^32 types");
        self.kind_ids.insert((types.owner, types.content), id);
        id
    }

    fn edge(&mut self, to: u32) {
        if !self.here.is_new {
            return;
        }
        let name = self.way_names[self.here.way.0 as usize];
        match &mut self.out {
            Out::Graph { edges, .. } => edges.push((self.here.owner, to, name)),
            Out::File(stream) => stream.edge(self.here.owner, NodeId(self.ids[to as usize]), name),
        }
    }

    /// A block of this size that the walk has come to.
    fn tell(&mut self, block: Block, size: usize, start_is_known: bool) {
        self.settle();
        let address = block.pointer.addr();
        let known = self.by_address.get(&address).copied();
        let node = match known {
            // Reached by two roots: its contents are walked again, and found to be known.
            Some(known) => {
                self.edge(known);
                known
            }
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
        self.told = Some((node, known.is_none()));
    }

    fn stack(&mut self, address: usize) -> Option<FrameId> {
        let sites = self.allocation_sites?;
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

    /// The node that an address belongs to. Ranges must be in order.
    fn target(&self, address: usize) -> Option<u32> {
        let shared = self.shared.get(&address).copied();
        shared.or_else(|| {
            let after = self.ranges.partition_point(|range| range.start <= address);
            let range = self.ranges.get(after.checked_sub(1)?)?;
            (address < range.end).then_some(range.node)
        })
    }

    /// Whether a file could not be written.
    pub(super) fn has_failed(&self) -> bool {
        matches!(&self.out, Out::File(stream) if stream.has_failed())
    }

    /// The graph, if that was asked for.
    pub(super) fn finish(mut self, now: Option<u64>) -> Option<Graph> {
        self.ranges.sort_unstable_by_key(|range| (range.start, range.end));
        let Out::Graph { found, mut edges, pointers } =
            core::mem::replace(&mut self.out, Out::Graph { found: vec![], edges: vec![], pointers: vec![] })
        else {
            return None;
        };
        let resolved = |(from, name, address)| Some((from, self.target(address)?, name));
        edges.extend(pointers.into_iter().filter_map(resolved));
        edges.sort_by_key(|(from, ..)| *from);
        let mut builder = self.builder;
        builder.set_creation_time(now);
        let mut edges = edges.into_iter().peekable();
        for (place, found) in (0..).zip(&found) {
            builder.node(found.parts(&self.kinds)).expect("counted when it was found");
            while let Some((_, to, name)) = edges.next_if(|(from, ..)| *from == place) {
                let to = NodeId(self.ids[to as usize]);
                builder.edge(to, name).expect("a program has less than 2^32 edges");
            }
        }
        Some(builder.finish().expect("each block has its own address, and edges lead to blocks"))
    }

    /// Ends the file, in which `names` said what roots there are. Gives the number of nodes and edges; nothing if
    /// there is no file.
    pub(super) fn finish_file(mut self, names: &[String]) -> io::Result<(u64, u64)> {
        // What was named and then not told is nothing.
        while self.roots < names.len() as u64 {
            self.open_root("", || "", &());
            self.close_root();
        }
        self.ranges.sort_unstable_by_key(|range| (range.start, range.end));
        let Out::File(stream) = core::mem::replace(
            &mut self.out,
            Out::Graph { found: Vec::new(), edges: Vec::new(), pointers: Vec::new() },
        ) else {
            return Ok((0, 0));
        };
        let target = |address| Some(NodeId(self.ids[self.target(address)? as usize]));
        stream.finish(Context { builder: &self.builder, kinds: &self.kinds }, target)
    }
}

fn root_id(place: u64) -> u64 {
    ROOT_ID + 1 + place
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
        self.settle();
        self.before.push(self.here);
        self.here = Place { way: self.step(edge), type_name, ..self.here };
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
        if !self.here.is_new {
            return;
        }
        let name = self.way_names[self.here.way.0 as usize];
        let known = self.shared.get(&address).copied();
        match (&mut self.out, known) {
            (Out::Graph { pointers, .. }, _) => pointers.push((self.here.owner, name, address)),
            (Out::File(stream), Some(known)) => {
                stream.edge(self.here.owner, NodeId(self.ids[known as usize]), name);
            }
            (Out::File(stream), None) => stream.pointer(self.here.owner, name, address),
        }
    }

    fn open_block(&mut self) {
        self.before.push(self.here);
        if let Some((owner, is_new)) = self.told.take() {
            self.here.owner = owner;
            self.here.is_new = is_new;
            self.here.way = Way::EMPTY;
        }
        if let Out::File(stream) = &mut self.out {
            stream.open();
        }
    }

    fn close_block(&mut self) {
        self.close();
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
