//! Decides whether a collection may start.
//!
//! If a reporter starts a collection on its own thread, this crate refuses the collection at once. On another thread,
//! this crate cannot detect that the reporter has started the collection. Each such collection runs the reporter again,
//! and the reporter starts yet another collection. So two numbers are bounded:
//!
//! - The number of simultaneous collections: when [`MOST_AT_ONCE`] collections run, further collections are refused
//!   until all of them have ended. Otherwise, the waiting reporters would start a new collection whenever one
//!   collection ends.
//! - The length of a chain of collections, in which each collection starts during the previous collection
//!   ([`LONGEST_CHAIN`]). Such a chain occurs if the reporter does not wait for its thread: then few collections run at
//!   the same time.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::process_lock::ProcessLock;

const MOST_AT_ONCE: usize = 32;
const LONGEST_CHAIN: u32 = 1000;

struct UnderWay {
    /// The process that runs these collections. After a fork, the child process starts without collections.
    process: u32,
    /// For each running collection: the number of earlier collections in its chain. Each collection of a chain started
    /// during the previous collection.
    chains: Vec<u32>,
    is_full: bool,
}

static UNDER_WAY: ProcessLock<UnderWay> =
    ProcessLock::new(UnderWay { process: 0, chains: Vec::new(), is_full: false });
static REFUSED: AtomicU64 = AtomicU64::new(0);

/// The permission for one collection. The collection counts as running until the permission is dropped.
pub(crate) struct CollectRight {
    process: u32,
    chain: u32,
}

/// Admits a collection. The error is the reason for a refusal.
pub(crate) fn admit() -> Result<CollectRight, String> {
    let process = std::process::id();
    let mut under_way = UNDER_WAY.lock();
    if under_way.process != process {
        *under_way = UnderWay { process, chains: Vec::new(), is_full: false };
    }
    let chain = under_way.chains.iter().max().map_or(0, |longest| longest + 1);
    under_way.is_full |= under_way.chains.len() >= MOST_AT_ONCE;
    if under_way.is_full || chain >= LONGEST_CHAIN {
        REFUSED.fetch_add(1, Ordering::SeqCst);
        let why = if under_way.is_full {
            format!("{MOST_AT_ONCE} collections ran at the same time")
        } else {
            format!("each of {LONGEST_CHAIN} collections started while the one before it ran")
        };
        return Err(format!(
            "nothing was collected: {why}; a reporter must not start a collection on another thread"
        ));
    }
    under_way.chains.push(chain);
    Ok(CollectRight { process, chain })
}

/// The number of collections that were refused so far.
pub(crate) fn refused() -> u64 {
    REFUSED.load(Ordering::SeqCst)
}

impl Drop for CollectRight {
    fn drop(&mut self) {
        let mut under_way = UNDER_WAY.lock();
        if under_way.process != self.process {
            return;
        }
        if let Some(place) = under_way.chains.iter().position(|chain| *chain == self.chain) {
            under_way.chains.swap_remove(place);
        }
        under_way.is_full &= !under_way.chains.is_empty();
    }
}
