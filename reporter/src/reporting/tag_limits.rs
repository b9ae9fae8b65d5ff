//! Limits of the live bytes of tags, with callbacks.

use core::fmt;
use core::time::Duration;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use crate::allocator::tags::crossing;
use crate::allocator::tags::tallies::TagRecord;
use crate::platform;
use crate::process_lock::ProcessLock;

use super::counted_tags::CountedTag;
use super::heap_figures::ScopeError;
use super::tag_pause::TagPause;

/// A limit for the live bytes of a tag and of the tags below its path.
///
/// ```standalone_crate
/// use memory_reporter::tags::{Tag, TagLimit};
/// use std::sync::mpsc;
///
/// memory_reporter::global_allocator!(std::alloc::System);
///
/// let (sender, crossings) = mpsc::channel();
/// let _limit = TagLimit::new("explicit/cache")?
///     .at(1 << 20, move |crossing| sender.send(crossing.live_bytes).unwrap_or_default())?;
/// let page = Tag::new("explicit/cache").run(|| vec![0_u8; 2 << 20]);
/// assert_eq!(crossings.recv()?, 2 << 20);
/// # drop(page);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TagLimit(CountedTag);

/// A moment at which the live bytes of a tag exceeded a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitCrossing {
    /// The limit, in bytes.
    pub limit_bytes: u64,
    /// The largest sum of the requested bytes of the tag's live blocks since the crossing, in bytes.
    pub live_bytes: u64,
}

impl TagLimit {
    /// A limit for the tag of this path. The tag [counts](CountedTag) from now on.
    ///
    /// # Errors
    ///
    /// Returns the error of [`CountedTag::new`].
    pub fn new(path: impl AsRef<str>) -> Result<Self, ScopeError> {
        CountedTag::new(path).map(Self)
    }

    /// Calls `callback` each time that the live bytes exceed this number of bytes, and at once if they exceed it now.
    ///
    /// The limit does not stop an allocation. The allocating thread only sets a flag; the callback runs on a thread of
    /// its own, without a tag, and may allocate, wait or panic. After a call, the limit is active again when the live
    /// bytes have fallen to it. A crossing during a call is at most one more call. In the child of a fork, limits have
    /// no effect.
    ///
    /// # Errors
    ///
    /// Returns an error if the system cannot create a thread.
    pub fn at(
        &self,
        bytes: u64,
        callback: impl FnMut(&LimitCrossing) + Send + 'static,
    ) -> io::Result<LimitRegistration> {
        let _paused = TagPause::new();
        start_helper()?;
        let (sender, receiver) = sync_channel::<LimitCrossing>(1);
        let mut callback = callback;
        let run = move || {
            for crossing in receiver {
                // A panic ends this call only. The panic hook has printed it.
                let _ = catch_unwind(AssertUnwindSafe(|| callback(&crossing)));
            }
        };
        platform::spawn("tag-limit", Box::new(run))?;
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let limit = ActiveLimit { id, record: self.0.record(), bytes, is_crossed: false, sender };
        let mut limits = LIMITS.lock();
        limits.0.push(limit);
        limits.update();
        Ok(LimitRegistration { id })
    }

    /// The tag that counts.
    pub fn counted(&self) -> CountedTag {
        self.0
    }
}

/// Ends a limit when dropped. A running callback continues.
#[must_use = "the limit ends when the registration is dropped; to keep it, call `forever`"]
pub struct LimitRegistration {
    id: u64,
}

impl LimitRegistration {
    /// Keeps the limit until the process ends.
    #[allow(clippy::mem_forget, reason = "the caller requests that it never ends")]
    pub fn forever(self) {
        core::mem::forget(self);
    }
}

impl fmt::Debug for LimitRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimitRegistration").finish_non_exhaustive()
    }
}

impl Drop for LimitRegistration {
    fn drop(&mut self) {
        let _paused = TagPause::new();
        let mut limits = LIMITS.lock();
        if let Some(index) = limits.0.iter().position(|limit| limit.id == self.id) {
            let ended = limits.0.swap_remove(index);
            ended.record.set_limit(None);
            limits.update();
        }
    }
}

struct ActiveLimit {
    id: u64,
    record: &'static TagRecord,
    bytes: u64,
    /// The callback was called, and the live bytes have not fallen to the limit since.
    is_crossed: bool,
    sender: SyncSender<LimitCrossing>,
}

/// The limits of all tags.
struct TagLimits(Vec<ActiveLimit>);

static LIMITS: ProcessLock<TagLimits> = ProcessLock::new(TagLimits(Vec::new()));

impl TagLimits {
    /// Calls the callbacks of crossed limits, and gives each record its lowest limit that is not crossed. Returns
    /// whether a limit is crossed.
    fn update(&mut self) -> bool {
        let mut records: Vec<&'static TagRecord> = self.0.iter().map(|limit| limit.record).collect();
        records.sort_by_key(|record| core::ptr::from_ref(*record).addr());
        records.dedup_by(|a, b| core::ptr::eq(*a, *b));
        for record in records {
            // The live bytes may exceed the new limit before the hooks know the limit.
            while self.update_record(record) {}
        }
        self.0.iter().any(|limit| limit.is_crossed)
    }

    /// Returns whether the live bytes now exceed a limit that is not crossed.
    fn update_record(&mut self, record: &'static TagRecord) -> bool {
        let highest = record.take_crossed().max(record.figures().live);
        let mut lowest = None;
        for limit in self.0.iter_mut().filter(|limit| core::ptr::eq(limit.record, record)) {
            let is_above = highest > limit.bytes;
            if is_above && !limit.is_crossed {
                // If a call runs and another waits, the callback will see this crossing, too.
                let crossing = LimitCrossing { limit_bytes: limit.bytes, live_bytes: highest };
                let _ = limit.sender.try_send(crossing);
            }
            limit.is_crossed = is_above;
            if !is_above {
                lowest = Some(lowest.map_or(limit.bytes, |other: u64| other.min(limit.bytes)));
            }
        }
        record.set_limit(lowest);
        lowest.is_some_and(|lowest| record.figures().live > lowest)
    }
}

/// The time between two looks at the live bytes while a limit is crossed.
const LOOK: Duration = Duration::from_millis(10);

/// Starts the thread that the hooks wake.
fn start_helper() -> io::Result<()> {
    static STARTED: ProcessLock<bool> = ProcessLock::new(false);
    let mut started = STARTED.lock();
    if !*started {
        platform::spawn("tag-limits", Box::new(watch))?;
        *started = true;
    }
    Ok(())
}

fn watch() {
    crossing::set_helper(thread::current());
    let mut is_crossed = true;
    loop {
        if is_crossed {
            thread::park_timeout(LOOK);
        } else {
            thread::park();
        }
        is_crossed = LIMITS.lock().update();
    }
}
