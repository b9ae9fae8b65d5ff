//! Decides whether a collection may start.
//!
//! If a reporter starts a collection on its own thread, the collection is recognized and refused at once. If it does
//! so on another thread, this is impossible: a thread has no mark of the reporter that it works for. Each such
//! collection runs the reporter again, and the reporter starts yet another collection, so the number of simultaneous
//! collections must be bounded. When [`MOST_AT_ONCE`] collections run, further collections are refused until all of
//! them have ended. If only the next collection were refused, the reporters behind the first one would start as many
//! again at each level. If the reporter does not wait for its thread, few collections run at the same time, but each
//! starts during the one before. [`LONGEST_CHAIN`] bounds such a chain.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::process_lock::ProcessLock;

const MOST_AT_ONCE: usize = 32;
const LONGEST_CHAIN: u32 = 1000;

struct UnderWay {
    /// The process of these collections. After a fork, the child process starts without any.
    process: u32,
    /// For each running collection: the number of collections before it that each started during the one before.
    chains: Vec<u32>,
    is_full: bool,
}

static UNDER_WAY: ProcessLock<UnderWay> =
    ProcessLock::new(UnderWay { process: 0, chains: Vec::new(), is_full: false });
static REFUSED: AtomicU64 = AtomicU64::new(0);

/// The permission to collect. It ends when it is dropped.
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
            format!("{LONGEST_CHAIN} collections in a row each started while another ran")
        };
        return Err(format!("nothing was collected: {why}; a reporter must not start one on another thread"));
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
