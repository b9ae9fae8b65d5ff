//! What a scope returns: figures, stacks, and the reasons why figures could be wrong.

use core::fmt;
use std::collections::BTreeMap;

use crate::allocator::tags::sites::SiteCount;
use crate::allocator::tags::tallies::{self, RawFigures};
use crate::allocator::tags::{self, TagNumber};
use crate::engine_abi::{self, SiteFrame};

/// The figures of a scope. Sizes are requested bytes, unless the field says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapFigures {
    /// The number of blocks that code in the scope allocated. A reallocation is not an allocation.
    pub allocations: u64,
    /// The number of blocks whose size code in the scope changed.
    pub reallocations: u64,
    /// The number of freed blocks of the scope. Any thread may have freed them.
    pub frees: u64,
    /// The sum of the sizes of all allocations, and of the new sizes of all reallocations, in bytes.
    pub bytes: u64,
    /// Like `bytes`, but usable bytes: slop included.
    pub usable_bytes: u64,
    /// The largest sum of the sizes of the scope's live blocks, in bytes.
    pub peak_bytes: u64,
    /// The number of the scope's live blocks. A block from outside counts here if it grew in the scope.
    pub retained_blocks: u64,
    /// The sum of the sizes of the scope's live blocks, in bytes.
    pub retained_bytes: u64,
    /// The change of the heap by code in the scope, in bytes: `retained_bytes`, minus the bytes of blocks from outside
    /// that this code freed.
    pub net_bytes: i64,
}

impl HeapFigures {
    pub(super) fn from_raw(raw: &RawFigures) -> Self {
        Self {
            allocations: raw.allocations,
            reallocations: raw.reallocations,
            frees: raw.frees,
            bytes: raw.requested,
            usable_bytes: raw.usable,
            peak_bytes: raw.peak,
            retained_blocks: raw.live_blocks,
            retained_bytes: raw.live,
            net_bytes: raw.net,
        }
    }
}

/// The reason why a scope has no exact figures.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScopeError {
    /// The program declares no allocator.
    NoAllocator,
    /// All numbers of tags and scopes are in use.
    NoRoom {
        /// The name of the scope, or the path of the tag.
        scope: String,
    },
    /// A tag cannot have this path.
    InvalidPath {
        /// The path.
        path: String,
        /// The reason.
        why: &'static str,
    },
    /// The scope was made before a fork, in the parent process.
    OtherProcess {
        /// The number of the parent process.
        process: u32,
    },
    /// The system had no memory for the table of tags.
    LostBlocks {
        /// The number of blocks that are not counted.
        blocks: u64,
    },
    /// Code of the scope ran without the scope: near the end of a thread, or without a number for a nested scope.
    Uncounted,
}

impl fmt::Display for ScopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAllocator => f.write_str(
                "no allocator is declared, so blocks are not counted; add `memory_reporter::global_allocator!(std::alloc::System);` to the test or program",
            ),
            Self::NoRoom { scope } => write!(
                f,
                "no room for the scope `{scope}`: a process can have 65,534 scopes and tags at once; drop scopes, or free their blocks"
            ),
            Self::InvalidPath { path, why } => write!(f, "no tag can have the path `{path}`: {why}"),
            Self::OtherProcess { process } => write!(
                f,
                "the scope belongs to process {process}, and this process is its fork; make the scope after the fork"
            ),
            Self::LostBlocks { blocks } => write!(
                f,
                "{blocks} blocks are not counted: the system had no memory for the table of tags"
            ),
            Self::Uncounted => f.write_str(
                "code of the scope ran uncounted: at the end of a thread, in a destructor of a thread-local value, or in nested scopes when all 65,534 numbers of scopes, tags and their combinations were in use",
            ),
        }
    }
}

impl core::error::Error for ScopeError {}

/// The blocks of a scope that one stack allocated.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScopeStack {
    /// The number of blocks.
    pub blocks: u64,
    /// The requested bytes of allocations, or the usable bytes of live blocks.
    pub bytes: u64,
    /// The frames, the innermost first; empty for blocks without a recorded stack.
    pub frames: Vec<SiteFrame>,
}

impl ScopeStack {
    pub(super) fn all(mut counts: Vec<SiteCount>) -> Vec<Self> {
        counts.sort_by_key(|count| (core::cmp::Reverse((count.bytes, count.blocks)), count.site));
        let stack = |count: SiteCount| Self {
            blocks: count.blocks,
            bytes: count.bytes,
            frames: if count.site == 0 { Vec::new() } else { engine_abi::allocation_frames(count.site) },
        };
        counts.into_iter().map(stack).collect()
    }
}

/// The live blocks of a scope by the number of their stack.
pub(super) fn live_sites(scope: TagNumber) -> Vec<SiteCount> {
    // The table must not change during the walk, so nothing else happens in it.
    let mut blocks = Vec::new();
    tags::for_each(|block| {
        if tallies::is_in_chain(block.tag, scope) {
            blocks.push((block.start, block.bytes));
        }
    });
    let mut sums = BTreeMap::<u64, SiteCount>::new();
    for (start, bytes) in blocks {
        let site = engine_abi::allocation_site(start).unwrap_or(0);
        let sum = sums.entry(site).or_insert(SiteCount { site, blocks: 0, bytes: 0 });
        sum.blocks += 1;
        sum.bytes += bytes as u64;
    }
    sums.into_values().collect()
}
