//! The nodes that a walk has met, by address.

use hashbrown::HashMap;

use super::field_path::FieldPath;
use super::found_node::ROOT_ID;
use crate::graph::NodeId;

/// The first id for blocks at unknown addresses. Real addresses are smaller, unless the program tags them or an impl
/// invents them. Firefox reads an id as a double; a double represents all integers up to 2^53.
const FIRST_HIDDEN_ID: u64 = 1 << 52;

/// The identity of a block.
#[derive(Clone, Copy, Debug)]
pub(super) enum BlockKey {
    /// An address in the block. It is the same for every path of the walk.
    At(usize),
    /// For a block whose address is not accessible to the walk, such as the block of an empty hash table. The fields
    /// are the start of the block or value that contains the pointer, the path of fields to the pointer, and the
    /// number of such blocks that the walk has met earlier in the same block or value.
    Hidden(usize, FieldPath, u32),
}

/// All nodes of a walk, numbered in the order in which the walk meets them. 0 is the root.
pub(super) struct WalkNodes {
    /// The id of each node.
    ids: Vec<u64>,
    by_address: HashMap<usize, u32>,
    hidden: HashMap<(usize, FieldPath, u32), u32>,
    /// The number of used ids from [`FIRST_HIDDEN_ID`].
    hidden_ids: u64,
    /// The nodes of shared blocks, by the address that is the same for all pointers to the block.
    shared: HashMap<usize, u32>,
    ranges: Vec<AddressRange>,
}

/// A range of addresses that belongs to a node, for finding the targets of references.
#[derive(Clone, Copy, Debug)]
struct AddressRange {
    start: usize,
    end: usize,
    node: u32,
}

impl WalkNodes {
    /// The nodes of a new walk: only the root.
    pub(super) fn new() -> Self {
        Self {
            ids: vec![ROOT_ID],
            by_address: HashMap::new(),
            hidden: HashMap::new(),
            hidden_ids: 0,
            shared: HashMap::new(),
            ranges: Vec::new(),
        }
    }

    /// Numbers a new node.
    pub(super) fn add(&mut self, id: u64) -> u32 {
        let node = u32::try_from(self.ids.len()).expect("a program has fewer than 2^32 blocks");
        self.ids.push(id);
        node
    }

    pub(super) fn id(&self, node: u32) -> NodeId {
        NodeId(self.ids[node as usize])
    }

    pub(super) fn find(&self, key: BlockKey) -> Option<u32> {
        match key {
            BlockKey::At(address) => self.by_address.get(&address).copied(),
            BlockKey::Hidden(start, path, before) => self.hidden.get(&(start, path, before)).copied(),
        }
    }

    pub(super) fn set(&mut self, key: BlockKey, node: u32) {
        match key {
            BlockKey::At(address) => self.by_address.insert(address, node),
            BlockKey::Hidden(start, path, before) => self.hidden.insert((start, path, before), node),
        };
    }

    /// The id of a new block: its address if the address is known and less than [`FIRST_HIDDEN_ID`], otherwise an
    /// unused id.
    pub(super) fn new_id(&mut self, key: BlockKey) -> u64 {
        if let BlockKey::At(address) = key
            && (address as u64) < FIRST_HIDDEN_ID
        {
            return address as u64;
        }
        self.hidden_ids += 1;
        FIRST_HIDDEN_ID + self.hidden_ids - 1
    }

    pub(super) fn shared(&self, address: usize) -> Option<u32> {
        self.shared.get(&address).copied()
    }

    pub(super) fn set_shared(&mut self, address: usize, node: u32) {
        self.shared.insert(address, node);
    }

    /// Records that the node has these addresses.
    pub(super) fn occupies(&mut self, node: u32, start: usize, bytes: usize) {
        self.ranges.push(AddressRange { start, end: start.saturating_add(bytes), node });
    }

    /// Ends the walk, and prepares the look-up of references.
    pub(super) fn finish(mut self) -> ReferenceTargets {
        self.ranges.sort_unstable_by_key(|range| (range.start, range.end));
        ReferenceTargets { nodes: self }
    }
}

/// All nodes of a finished walk. The targets of references are known only after the walk.
pub(super) struct ReferenceTargets {
    /// The nodes, with sorted address ranges.
    nodes: WalkNodes,
}

impl ReferenceTargets {
    /// The node that contains an address; `None` if there is none.
    pub(super) fn node_at(&self, address: usize) -> Option<u32> {
        let WalkNodes { ranges, .. } = &self.nodes;
        self.nodes.shared(address).or_else(|| {
            let after = ranges.partition_point(|range| range.start <= address);
            let range = ranges.get(after.checked_sub(1)?)?;
            (address < range.end).then_some(range.node)
        })
    }

    pub(super) fn id(&self, node: u32) -> NodeId {
        self.nodes.id(node)
    }
}
