//! Reports of blocks, and reports of pointers that are not blocks.
//!
//! A block keeps its first two reports, in order: two reports mean that it was reported at least twice. The table of
//! live blocks has a bit that is set for blocks with reports, so that freeing a block without reports has no extra
//! cost. If the bit is not set, reports found here belong to a freed block.

use crate::system::lock::{Lock, LockedValue};
use crate::system::pages::{self, PageMap, PageVec};
use crate::tables::runs::ReporterNumber;
use crate::tables::trace_id::TraceId;

const SHARDS: usize = 64;
/// The maximum number of faults in the list. Further faults are only counted.
const MOST_FAULTS: usize = 1000;

/// A path of a report, as its index in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PathId(pub(crate) u32);

impl PathId {
    pub(crate) const NONE: Self = Self(u32::MAX);
}

/// One report of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BlockReport {
    pub(crate) trace: TraceId,
    pub(crate) path: PathId,
    /// Whether the report was made at allocation, so that it stays until the block is freed.
    pub(crate) on_alloc: bool,
    /// The reporter that made the report; 0 if the report was made outside of a collection.
    pub(crate) reporter: ReporterNumber,
}

/// The reports of one block.
pub(crate) type BlockReports = [Option<BlockReport>; 2];

/// The reason why a reported pointer is a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// The pointer is outside of all known blocks: on the stack, static, mapped, or in a block of another allocator.
    NotHeap,
    /// The pointer is inside a block, but not at its start.
    Interior,
    /// The pointer is the start of a block that was already freed.
    Freed,
    /// The block was freed after the report.
    FreedSince,
}

impl FaultKind {
    pub(crate) const ALL: [Self; 4] = [Self::NotHeap, Self::Interior, Self::Freed, Self::FreedSince];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NotHeap => "not-heap",
            Self::Interior => "interior",
            Self::Freed => "freed",
            Self::FreedSince => "freed-since",
        }
    }
}

/// A report of a pointer that is not a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReportFault {
    pub(crate) kind: FaultKind,
    pub(crate) address: usize,
    pub(crate) path: PathId,
    /// The stack of the code that made the report.
    pub(crate) trace: TraceId,
}

/// A path with its amounts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReportPath {
    start: usize,
    len: usize,
    /// The sum of the amounts that were reported at this path.
    pub(crate) claimed: u64,
    /// The usable bytes of the blocks that were marked for this path.
    pub(crate) marked: u64,
}

/// All paths, in order of their numbers.
pub(crate) struct PathTable<const FOR_DUMP: bool = false> {
    text: PageVec<u8, FOR_DUMP>,
    list: PageVec<ReportPath, FOR_DUMP>,
}

impl<const FOR_DUMP: bool> PathTable<FOR_DUMP> {
    const fn new() -> Self {
        Self { text: pages::list(), list: pages::list() }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &ReportPath)> {
        self.list
            .iter()
            .map(|path| (self.text.get(path.start..path.start + path.len).unwrap_or_default(), path))
    }
}

/// The paths, and an index by the hash of the text.
struct KnownPaths {
    paths: PathTable,
    by_text: PageMap<u64, PathId>,
}

impl KnownPaths {
    const fn new() -> Self {
        Self { paths: PathTable::new(), by_text: pages::map() }
    }
}

pub(crate) struct FaultList<const FOR_DUMP: bool = false> {
    pub(crate) list: PageVec<ReportFault, FOR_DUMP>,
    /// The number of faults of each kind, including faults that are not in the list.
    pub(crate) counts: [u64; 4],
}

pub(crate) struct Marks {
    shards: [LockedValue<PageMap<usize, BlockReports>>; SHARDS],
    paths: LockedValue<KnownPaths>,
    faults: LockedValue<FaultList>,
}

impl Marks {
    pub(crate) const fn new() -> Self {
        Self {
            shards: [const { LockedValue::new(pages::map()) }; SHARDS],
            paths: LockedValue::new(KnownPaths::new()),
            faults: LockedValue::new(FaultList { list: pages::list(), counts: [0; 4] }),
        }
    }

    pub(crate) fn for_each_lock(&self, each: &mut dyn FnMut(&Lock)) {
        self.shards.iter().for_each(|shard| each(shard.lock()));
        each(self.paths.lock());
        each(self.faults.lock());
    }

    fn shard(&self, address: usize) -> &LockedValue<PageMap<usize, BlockReports>> {
        &self.shards[(address >> 4 ^ address >> 12) % SHARDS]
    }

    /// Adds a report. `fresh` means that the block has no report yet: an existing entry belongs to a freed block.
    /// Returns false if memory is short.
    ///
    /// The function calls `allowed` under a lock that `clear_reports` also takes. So `clear_reports` removes a report
    /// that was allowed before it. If this function runs after `clear_reports`, then `allowed` sees the owner of the
    /// marks that was set before `clear_reports`.
    pub(crate) fn add(
        &self,
        address: usize,
        report: BlockReport,
        fresh: bool,
        allowed: impl FnOnce() -> bool,
    ) -> bool {
        let mut shard = self.shard(address).hold();
        if !allowed() {
            if fresh {
                shard.remove(&address);
            }
            return true;
        }
        let Some(reports) = pages::entry(&mut shard, address, || [None; 2]) else { return false };
        if fresh {
            *reports = [Some(report), None];
        } else if let Some(place) = reports.iter_mut().find(|place| place.is_none()) {
            *place = Some(report);
        }
        true
    }

    pub(crate) fn get(&self, address: usize) -> BlockReports {
        self.shard(address).hold().get(&address).copied().unwrap_or_default()
    }

    pub(crate) fn remove(&self, address: usize) -> BlockReports {
        self.shard(address).hold().remove(&address).unwrap_or_default()
    }

    /// Removes all reports, except reports made at allocation. Calls `unmarked` for each block without remaining
    /// reports. Returns the number of blocks that still have reports.
    pub(crate) fn clear_reports(&self, mut unmarked: impl FnMut(usize)) -> usize {
        let mut left = 0;
        for shard in &self.shards {
            let mut shard = shard.hold();
            shard.retain(|address, reports| {
                let mut kept = reports.iter().flatten().filter(|report| report.on_alloc).copied();
                let reports_left = [kept.next(), kept.next()];
                *reports = reports_left;
                if reports_left[0].is_none() {
                    unmarked(*address);
                }
                reports_left[0].is_some()
            });
            left += shard.len();
        }
        // Hold only one lock at a time: a fork takes all of them, in the order of `for_each_lock`.
        for path in &mut self.paths.hold().paths.list {
            (path.claimed, path.marked) = (0, 0);
        }
        let mut faults = self.faults.hold();
        faults.list.clear();
        faults.counts = [0; 4];
        left
    }

    /// Removes a reporter's reports for a path, or for all paths if `path` is `NONE`, except reports made at
    /// allocation. Calls `unmarked` for each block without remaining reports.
    pub(crate) fn withdraw(
        &self,
        reporter: ReporterNumber,
        path: PathId,
        usable: impl Fn(usize) -> usize,
        mut unmarked: impl FnMut(usize),
    ) {
        let is_withdrawn = |report: &BlockReport| {
            report.reporter == reporter && !report.on_alloc && (path == PathId::NONE || path == report.path)
        };
        for shard in &self.shards {
            // Update the paths after the shard's lock is free. Hold only one lock at a time, since a fork takes all of
            // them.
            let mut marked: PageVec<_> = pages::list();
            shard.hold().retain(|address, reports| {
                for report in reports.iter().flatten().filter(|report| is_withdrawn(report)) {
                    pages::push(&mut marked, (report.path, usable(*address)));
                }
                let mut kept = reports.iter().flatten().filter(|report| !is_withdrawn(report)).copied();
                let left = [kept.next(), kept.next()];
                *reports = left;
                if left[0].is_none() {
                    unmarked(*address);
                }
                left[0].is_some()
            });
            for (path, bytes) in marked {
                if let Some(path) = self.paths.hold().paths.list.get_mut(path.0 as usize) {
                    path.marked = path.marked.saturating_sub(bytes as u64);
                }
            }
        }
    }

    /// Forgets all paths. The caller has removed all reports with a path. After the call, an old id is unknown, or it
    /// identifies another path.
    pub(crate) fn forget_paths(&self) {
        let mut known = self.paths.hold();
        if !known.paths.list.is_empty() {
            *known = KnownPaths::new();
        }
    }

    /// Whether the path is in the list.
    pub(crate) fn is_known(&self, path: PathId) -> bool {
        (path.0 as usize) < self.paths.hold().paths.list.len()
    }

    /// Forgets all reports, all paths and all faults.
    pub(crate) fn clear(&self) {
        self.clear_reports(|_| ());
        self.forget_paths();
        self.shards.iter().for_each(|shard| *shard.hold() = pages::map());
    }

    pub(crate) fn path(&self, text: &[u8]) -> PathId {
        let mut known = self.paths.hold();
        let KnownPaths { paths, by_text } = &mut *known;
        let mut hash = 0xCBF2_9CE4_8422_2325_u64;
        for byte in text {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
        }
        // If two paths have the same hash, try the next numbers.
        while let Some(known) = by_text.get(&hash) {
            let path = paths.list[known.0 as usize];
            if paths.text.get(path.start..path.start + path.len) == Some(text) {
                return *known;
            }
            hash = hash.wrapping_add(1);
        }
        let id = PathId(paths.list.len() as u32);
        let path = ReportPath { start: paths.text.len(), len: text.len(), claimed: 0, marked: 0 };
        if paths.text.try_reserve(text.len()).is_err()
            || pages::entry(by_text, hash, || id).is_none()
            || !pages::push(&mut paths.list, path)
        {
            return PathId::NONE;
        }
        paths.text.extend_from_slice(text);
        id
    }

    pub(crate) fn claim(&self, path: PathId, bytes: u64) {
        if let Some(path) = self.paths.hold().paths.list.get_mut(path.0 as usize) {
            path.claimed = path.claimed.saturating_add(bytes);
        }
    }

    pub(crate) fn disclaim(&self, path: PathId, bytes: u64) {
        if let Some(path) = self.paths.hold().paths.list.get_mut(path.0 as usize) {
            path.claimed = path.claimed.saturating_sub(bytes);
        }
    }

    pub(crate) fn count_marked(&self, path: PathId, bytes: usize) {
        if let Some(path) = self.paths.hold().paths.list.get_mut(path.0 as usize) {
            path.marked = path.marked.saturating_add(bytes as u64);
        }
    }

    /// Counts a fault, and keeps it if the list has room. Returns the number of faults.
    pub(crate) fn fault(&self, fault: ReportFault) -> u64 {
        let mut faults = self.faults.hold();
        faults.counts[fault.kind as usize] += 1;
        if faults.list.len() < MOST_FAULTS {
            pages::push(&mut faults.list, fault);
        }
        faults.counts.iter().sum()
    }

    /// A copy of the paths; `None` if memory is short. A slow caller that held the lock would make reporters and forks
    /// wait.
    pub(crate) fn paths(&self) -> Option<PathTable<true>> {
        let known = self.paths.hold();
        let PathTable { text, list } = &known.paths;
        Some(PathTable { text: pages::copy(text)?, list: pages::copy(list)? })
    }

    /// A copy of the faults; `None` if memory is short. A slow caller that held the lock would make reporters and forks
    /// wait.
    pub(crate) fn faults(&self) -> Option<FaultList<true>> {
        let faults = self.faults.hold();
        Some(FaultList { list: pages::copy(&faults.list)?, counts: faults.counts })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.shards.iter().map(|shard| pages::map_bytes(&shard.hold())).sum()
    }
}
