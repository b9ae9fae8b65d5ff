//! Builds the graph of all blocks that DMD records in this process, measured by the program or not.

use core::fmt;

use hashbrown::HashMap;
use memory_reporter::engine_abi::{self, BlockRow};

use super::dmd_sites::DmdSites;
use super::now;
use super::sites::AllocationSites;
use crate::census::{Breakdown, CensusError, CensusReport, census};
use crate::graph::{CoarseType, Graph, GraphBuilder, GraphFrameId, GraphTextId, NodeId, NodeParts};

/// The error if DMD does not record this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotRecording;

impl fmt::Display for NotRecording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "no census of allocated blocks: DMD does not record this process; declare dmd::Dmd as the global \
             allocator and set $DMD, or start the program with about-memory run",
        )
    }
}

impl std::error::Error for NotRecording {}

/// The reason why [`take_census`] failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TakeCensusError {
    /// DMD does not record this process.
    NotRecording,
    /// The census of the blocks failed.
    Census(CensusError),
}

impl fmt::Display for TakeCensusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRecording => NotRecording.fmt(f),
            Self::Census(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TakeCensusError {}

/// Takes a census of all blocks that DMD records in this process, like Firefox's `Debugger.Memory.takeCensus`.
///
/// ```no_run
/// use heap_graph::{Breakdown, take_census};
///
/// let by_stack_and_class =
///     Breakdown::parse(r#"{"by": "allocationStack", "then": {"by": "objectClass"}}"#)?;
/// println!("{}", take_census(&by_stack_and_class)?.to_json());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The census counts the blocks of [`allocated_blocks`]. To count only the memory of certain values, make a
/// [`HeapGraph`](super::HeapGraph). To count the objects of a language that the program interprets, build a graph with
/// [`GraphBuilder`]. Then take the [`census`](crate::census()) of that graph.
///
/// # Errors
///
/// Returns a [`TakeCensusError`] if DMD does not record this process, or if the census fails.
pub fn take_census(breakdown: &Breakdown) -> Result<CensusReport, TakeCensusError> {
    let graph = allocated_blocks().map_err(|NotRecording| TakeCensusError::NotRecording)?;
    census(&graph, breakdown).map_err(TakeCensusError::Census)
}

/// The graph of all blocks that DMD records in this process. The root has an edge without a name to each block.
/// Blocks have no edges.
///
/// The id of a node is the block's address, and its size is the usable size. Its type comes from the allocation
/// stack, as in DMD's dumps: the type of a `Vec<String>` is `[String]`, the array of its elements. Its class is the
/// type without path and parameters; an array keeps its brackets. The coarse type of text is
/// [`String`](CoarseType::String). Blocks of an unknown type have the coarse type [`Other`](CoarseType::Other). Text
/// and blocks of an unknown type have no class.
///
/// Other threads may allocate during the call. The graph contains every block that lives during the whole call, and
/// some other blocks. It does not contain the graph's own blocks.
///
/// # Errors
///
/// Returns [`NotRecording`] if DMD does not record this process.
pub fn allocated_blocks() -> Result<Graph, NotRecording> {
    let mut blocks = Vec::new();
    // The list grows inside a call of DMD, so DMD does not record the list's block.
    if !engine_abi::for_each_live_block(&mut |block| blocks.push(*block)) {
        return Err(NotRecording);
    }
    Ok(graph(&blocks))
}

/// The kind of the blocks from one allocation site: their stack and their type.
#[derive(Clone, Copy)]
struct StackBlocks {
    type_name: GraphTextId,
    class_name: Option<GraphTextId>,
    coarse_type: CoarseType,
    stack: Option<GraphFrameId>,
}

fn graph(blocks: &[BlockRow]) -> Graph {
    let few = "a process has fewer than 2^32 blocks";
    let mut builder = GraphBuilder::new();
    builder.set_creation_time(now());
    let roots = builder.text("roots").expect(few);
    builder.node(NodeParts::new(NodeId(0), 0, roots)).expect(few);
    // While a thread frees and reuses an address, the engine's table may contain the address twice.
    let mut blocks: Vec<&BlockRow> = blocks.iter().collect();
    blocks.sort_by_key(|block| block.address);
    blocks.dedup_by_key(|block| block.address);
    for block in &blocks {
        builder.edge(NodeId(block.address as u64), None).expect(few);
    }
    let mut sites = HashMap::new();
    for block in blocks {
        let site = *sites.entry(block.site).or_insert_with(|| site(&mut builder, block.site));
        let node = NodeParts {
            coarse_type: site.coarse_type,
            class_name: site.class_name,
            allocation_stack: site.stack,
            ..NodeParts::new(NodeId(block.address as u64), block.usable, site.type_name)
        };
        builder.node(node).expect(few);
    }
    builder.finish().expect("each block has its own address, and edges lead to blocks")
}

fn site(builder: &mut GraphBuilder, site: u64) -> StackBlocks {
    let few = "a program has fewer than 2^32 names";
    let stack = match site {
        0 => None,
        site => Some(builder.stack(&DmdSites.frames(site)).expect(few).unwrap_or(GraphFrameId::EMPTY_STACK)),
    };
    let name = if site == 0 { None } else { engine_abi::site_type(site) };
    let Some(name) = name else {
        let type_name = builder.text(UNKNOWN).expect(few);
        return StackBlocks { type_name, class_name: None, coarse_type: CoarseType::Other, stack };
    };
    let coarse_type = if is_text(&name) { CoarseType::String } else { CoarseType::Object };
    let type_name = builder.text(&name).expect(few);
    let class_name = (coarse_type == CoarseType::Object).then(|| builder.text(&class(&name)).expect(few));
    StackBlocks { type_name, class_name, coarse_type, stack }
}

/// The type of a block whose stack contains no type.
const UNKNOWN: &str = "unknown type";

/// Whether a type, as DMD writes it, is text.
fn is_text(name: &str) -> bool {
    matches!(name, "str" | "String" | "OsStr" | "OsString" | "Path" | "PathBuf" | "CStr" | "CString")
        || matches!(name, "str boxed slice" | "RcInner<str>" | "ArcInner<str>")
}

/// A type without path and parameters: `LeafNode` for `LeafNode<String, app::V>`, `[Stmt]` for `[syn::Stmt]`.
fn class(name: &str) -> String {
    let name = name.strip_prefix("table ").unwrap_or(name);
    let name = name.strip_suffix(" boxed slice").unwrap_or(name);
    if let Some(element) = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        return format!("[{}]", class(element));
    }
    let end = match name.find(['<', '(', '[', '{', ' ', ';']) {
        Some(0) | None => name.len(),
        Some(end) => end,
    };
    // A name that starts with a bracket, `&` or `*` is a tuple, an array or a pointer. It is not a path, so it is not
    // shortened.
    let path = &name[..end];
    match path.rsplit_once("::") {
        Some((_, last)) if !path.starts_with(['(', '[', '{', '&', '*']) => last.to_owned(),
        _ => path.to_owned(),
    }
}
