//! The nodes that a walk has met, by their addresses.

use hashbrown::HashMap;

use super::field_path::FieldPath;
use super::found_node::ROOT_ID;
use crate::graph::NodeId;

/// The first id of blocks at unknown addresses. The addresses of programs are smaller, unless the program tags them or
/// an impl makes them up. Firefox reads an id as a double, which holds all integers up to 2^53.
const FIRST_HIDDEN_ID: u64 = 1 << 52;

/// The identity of a block.
#[derive(Clone, Copy, Debug)]
pub(super) enum BlockKey {
    /// An address in the block, the same whenever the walk comes to it.
    At(usize),
    /// For a block whose address the walk does not see, such as that of an empty hash table: the start of the block or
    /// value that holds its pointer, the fields to the pointer, and how many such blocks come before it there.
    Hidden(usize, FieldPath, u32),
}

/// All nodes of a walk, numbered in the order in which the walk meets them; 0 is the root.
pub(super) struct WalkNodes {
    /// By node.
    ids: Vec<u64>,
    by_address: HashMap<usize, u32>,
    hidden: HashMap<(usize, FieldPath, u32), u32>,
    /// How many ids from [`FIRST_HIDDEN_ID`] on are taken.
    hidden_ids: u64,
    /// By the address that a shared block has for all that share it.
    shared: HashMap<usize, u32>,
    ranges: Vec<AddressRange>,
}

/// Addresses that belong to a node, to find what references point into.
#[derive(Clone, Copy, Debug)]
struct AddressRange {
    start: usize,
    end: usize,
    node: u32,
}

impl WalkNodes {
    /// The root only.
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
        let node = u32::try_from(self.ids.len()).expect("a program has less than 2^32 blocks");
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

    /// The id of a new block: its address, if no other block can have that as its id.
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

    /// Says that the node has these addresses.
    pub(super) fn occupies(&mut self, node: u32, start: usize, bytes: usize) {
        self.ranges.push(AddressRange { start, end: start.saturating_add(bytes), node });
    }

    /// Ends the walk.
    pub(super) fn finish(mut self) -> ReferenceTargets {
        self.ranges.sort_unstable_by_key(|range| (range.start, range.end));
        ReferenceTargets { nodes: self }
    }
}

/// All nodes of a walk that has ended: only now is it known what references point to.
pub(super) struct ReferenceTargets {
    /// With the ranges in order.
    nodes: WalkNodes,
}

impl ReferenceTargets {
    /// The node that an address belongs to.
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
