//! Which collections may begin.
//!
//! A collection that a reporter starts on its own thread is recognized and refused at once. One that it starts on
//! another thread is not: nothing says for whom a thread works. Each such collection runs that reporter again, which
//! starts yet another one, so the number of collections at the same time must be bounded. Once [`MOST_AT_ONCE`] run,
//! no other begins until all have ended: if only the next one was refused, the reporters behind the first would start
//! as many again at each level. If the reporter does not wait for its thread, few run at the same time, but each begins
//! during the one before; [`LONGEST_CHAIN`] bounds these.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::process_lock::ProcessLock;

const MOST_AT_ONCE: usize = 32;
const LONGEST_CHAIN: u32 = 1000;

struct UnderWay {
    /// The process of these collections: the child of a fork has none.
    process: u32,
    /// For each collection how many before it began during one another.
    chains: Vec<u32>,
    is_full: bool,
}

static UNDER_WAY: ProcessLock<UnderWay> =
    ProcessLock::new(UnderWay { process: 0, chains: Vec::new(), is_full: false });
static REFUSED: AtomicU64 = AtomicU64::new(0);

/// The right to collect, until dropped.
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
            format!("{MOST_AT_ONCE} collections were under way at once")
        } else {
            format!("{LONGEST_CHAIN} collections in a row each began while another was under way")
        };
        return Err(format!("nothing was collected: {why}; a reporter must not have another thread collect"));
    }
    under_way.chains.push(chain);
    Ok(CollectRight { process, chain })
}

/// How many collections were refused so far.
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
