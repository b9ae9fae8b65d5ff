//! The limits of this process's memory, and how much of each is used.

use core::mem::MaybeUninit;

use super::memory_groups::{GroupFile, KernelText, MemoryGroups, StatKey, decimal, machine_pressure};
use super::system_value;
use crate::platform::{GroupAmounts, MemoryStalls, MemoryUse};

/// The origin of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "only `dmd` uses it")]
pub enum BoundKind {
    /// A memory group of the process.
    Group,
    /// The address space of the process (`RLIMIT_AS`).
    AddressSpace,
    /// The memory of the machine.
    Machine,
}

/// A limit of the process's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "only `dmd` uses it")]
pub struct MemoryBound {
    /// The origin.
    pub kind: BoundKind,
    /// The limit in bytes, greater than 0.
    pub limit: u64,
    /// The bytes that count towards the limit, without inactive file pages: the kernel frees those before it kills.
    pub used: u64,
}

impl MemoryBound {
    /// The bytes that are left.
    pub fn left(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }

    /// The used share of the limit, in thousandths; more than 1,000 if the limit was lowered below the use.
    pub fn permille(&self) -> u64 {
        let permille = u128::from(self.used) * 1000 / u128::from(self.limit.max(1));
        u64::try_from(permille).unwrap_or(u64::MAX)
    }
}

impl MemoryGroups {
    /// The bound of one group, or `None` if the group has no limit.
    fn bound(&self, folder: usize) -> Option<MemoryBound> {
        let limits = [self.number(folder, GroupFile::Max), self.number(folder, GroupFile::High)];
        let limit = limits.into_iter().flatten().filter(|limit| *limit > 0).min()?;
        let current = self.number(folder, GroupFile::Current)?;
        let inactive = self.stat(folder, StatKey::InactiveFile).unwrap_or(0);
        Some(MemoryBound { kind: BoundKind::Group, limit, used: current.saturating_sub(inactive) })
    }

    /// The bytes of the own group that the system has written to its swap space; 0 if that is unknown.
    pub fn swapped(&self) -> u64 {
        self.number(self.own(), GroupFile::Swap).unwrap_or(0)
    }

    /// How often an allocation in the own group met a bound so far (`high` and `max` of `memory.events`).
    pub fn reclaims(&self) -> u64 {
        let count = |name| self.event(self.own(), name).unwrap_or(0);
        count("max").saturating_add(count("high"))
    }
}

/// The bound that the process would use to the largest share if it used this many bytes more: of all memory groups around
/// the process, its address space and the machine. Neither allocates nor panics. `None` if the kernel shows no limit.
pub(super) fn tightest_bound(groups: Option<&MemoryGroups>, more: u64) -> Option<MemoryBound> {
    tightest_bound_and_left(groups, more).map(|(bound, _)| bound)
}

/// Like `tightest_bound`, with the least number of bytes that are left of any bound.
pub fn tightest_bound_and_left(groups: Option<&MemoryGroups>, more: u64) -> Option<(MemoryBound, u64)> {
    let share =
        |bound: &MemoryBound| MemoryBound { used: bound.used.saturating_add(more), ..*bound }.permille();
    let of_groups =
        groups.into_iter().flat_map(|groups| groups.folders().filter_map(move |folder| groups.bound(folder)));
    let mut left = u64::MAX;
    let bounds = of_groups.chain(address_space()).chain(machine());
    let tightest = bounds.inspect(|bound| left = left.min(bound.left())).max_by_key(share)?;
    Some((tightest, left))
}

/// The tightest bound, for callers that may search for the groups each time.
pub(crate) fn memory_use() -> Option<MemoryUse> {
    let MemoryBound { limit, used, .. } = tightest_bound(MemoryGroups::find().as_ref(), 0)?;
    Some(MemoryUse { limit, used })
}

#[allow(unsafe_code, reason = "calls the C library")]
fn address_space() -> Option<MemoryBound> {
    let mut limit = MaybeUninit::<libc::rlimit>::zeroed();
    // SAFETY: `limit` is a place for the limit.
    unsafe { libc::getrlimit(libc::RLIMIT_AS, limit.as_mut_ptr()) };
    // SAFETY: all bytes are initialized: zeros, or the answer.
    let limit = unsafe { limit.assume_init() }.rlim_cur;
    if limit == 0 || limit == libc::RLIM_INFINITY {
        return None;
    }
    let sizes = KernelText::read(c"/proc/self/statm")?;
    let pages = decimal(sizes.text().split(|byte| *byte == b' ').next()?)?;
    let used = pages.checked_mul(system_value(libc::_SC_PAGESIZE)?)?;
    Some(MemoryBound { kind: BoundKind::AddressSpace, limit, used })
}

/// The memory of the machine with its swap space.
fn machine() -> Option<MemoryBound> {
    let text = KernelText::read(c"/proc/meminfo")?;
    let bytes = |key: &[u8]| text.value(key)?.checked_mul(1024);
    let swap = bytes(b"SwapTotal").unwrap_or(0);
    let limit = bytes(b"MemTotal")?.saturating_add(swap);
    let free = bytes(b"MemAvailable")?.saturating_add(bytes(b"SwapFree").unwrap_or(0));
    (limit > 0).then_some(MemoryBound { kind: BoundKind::Machine, limit, used: limit.saturating_sub(free) })
}

/// The amounts of the process's own group.
pub(crate) fn group_amounts() -> GroupAmounts {
    let Some(groups) = MemoryGroups::find() else { return GroupAmounts::default() };
    let own = groups.own();
    GroupAmounts {
        current: groups.number(own, GroupFile::Current),
        max: groups.folders().filter_map(|folder| groups.number(folder, GroupFile::Max)).min(),
        peak: groups.number(own, GroupFile::Peak),
        anon: groups.stat(own, StatKey::Anon),
        file: groups.stat(own, StatKey::File),
        kernel: groups.stat(own, StatKey::Kernel),
        events: ["high", "max", "oom", "oom_kill"].map(|name| groups.event(own, name)),
    }
}

/// The stalls of the own group, or of the machine if the kernel does not measure those of the group.
pub(crate) fn memory_stalls() -> MemoryStalls {
    let groups = MemoryGroups::find();
    let text = groups.as_ref().map_or_else(machine_pressure, MemoryGroups::pressure);
    let share = |kind| text.as_ref().and_then(|text| stalled_share(text.text(), kind));
    MemoryStalls { some: share(b"some avg10="), full: share(b"full avg10=") }
}

/// The share after a key, such as `some avg10=1.25`. The kernel shows two decimals.
fn stalled_share(text: &[u8], key: &[u8]) -> Option<u64> {
    let line = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(key))?;
    let (whole, part) = str::from_utf8(line).ok()?.split(' ').next()?.split_once('.')?;
    let (whole, part) = (decimal(whole.as_bytes())?, decimal(part.as_bytes()).filter(|part| *part < 100)?);
    whole.checked_mul(100)?.checked_add(part)
}
