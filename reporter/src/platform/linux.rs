//! Linux: `/proc`, glibc's mallinfo2, Unix sockets and signals.

#[cfg(feature = "live")]
mod background;
mod fork;
#[cfg(feature = "live")]
mod local_socket;
mod memory_bounds;
mod memory_groups;
#[cfg(feature = "live")]
mod private_folder;
mod proc;
mod resident;
#[cfg(feature = "live")]
mod signals;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod stack;
mod start_up;

#[cfg(feature = "live")]
pub use background::{ThreadHost, host_threads};
#[cfg(feature = "live")]
pub(crate) use background::{
    call_at_exit, is_hosted, may_lock_c_library, runs_with_other_rights, spawn_without_signals, thread_host,
};
pub(crate) use fork::at_fork;
#[cfg(feature = "live")]
pub(crate) use local_socket::{Peer, SocketListener};
pub use memory_bounds::{BoundKind, MemoryBound, tightest_bound_and_left};
pub(crate) use memory_bounds::{group_amounts, memory_stalls, memory_use};
pub use memory_groups::MemoryGroups;
#[cfg(feature = "live")]
pub(crate) use private_folder::{
    check_private_folder, create_private_file, create_private_folder, make_private_folder, own_uid,
    remove_private_folder, socket_folder,
};
pub(crate) use resident::resident_in;
#[cfg(feature = "live")]
pub(crate) use signals::{ignore_triggers, on_triggers};
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) use stack::{on_fresh_stack, remaining_stack};
pub(crate) use start_up::call_before_main;

use core::ptr::{NonNull, null_mut};

use proc::SmapsEntry;

use crate::small_sort::sort_by;

use super::{CHeap, FoundSymbol, Mapping, MappingKind, PageFaults, ProcessSizes, StackUsage};

/// The C library's heap. Only glibc provides these figures.
#[cfg(target_env = "gnu")]
#[allow(unsafe_code, reason = "calls the C library")]
pub(crate) fn c_heap() -> Option<CHeap> {
    #[cfg(feature = "live")]
    if !may_lock_c_library() {
        return None;
    }
    // SAFETY: `mallinfo2` has no precondition.
    let info = unsafe { libc::mallinfo2() };
    Some(CHeap {
        allocated: (info.hblkhd + info.uordblks) as u64,
        committed: (info.arena + info.hblkhd) as u64,
    })
}

/// The C library's heap. Only glibc provides these figures.
#[cfg(not(target_env = "gnu"))]
pub(crate) fn c_heap() -> Option<CHeap> {
    None
}

/// Lets the C library return free pages to the system.
#[allow(unsafe_code, reason = "calls the C library")]
pub(crate) fn trim_c_heap() {
    #[cfg(feature = "live")]
    if !may_lock_c_library() {
        return;
    }
    #[cfg(target_env = "gnu")]
    // SAFETY: `malloc_trim` has no precondition.
    unsafe {
        libc::malloc_trim(0)
    };
}

/// Maps zeroed pages. The system provides their memory when they are written. The function does not allocate. `None`
/// if the system refuses.
#[allow(unsafe_code, reason = "maps memory")]
pub(crate) fn zeroed_pages(bytes: usize) -> Option<NonNull<u8>> {
    let (access, kind) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
    // SAFETY: an anonymous mapping at an address that the kernel chooses overwrites nothing.
    let pages = unsafe { libc::mmap(null_mut(), bytes, access, kind, -1, 0) };
    if pages == libc::MAP_FAILED {
        return None;
    }
    // A huge page would take memory for hundreds of pages that stay unused. If the kernel has no huge pages, the call
    // fails without an effect.
    // SAFETY: the mapping is new, and the advice does not change its contents.
    unsafe { libc::madvise(pages, bytes, libc::MADV_NOHUGEPAGE) };
    NonNull::new(pages.cast())
}

/// Returns pages of [`zeroed_pages`] to the system.
///
/// # Safety
///
/// `zeroed_pages` returned these pages for this size, and they are no longer used.
#[allow(unsafe_code, reason = "unmaps memory")]
pub(crate) unsafe fn return_pages(pages: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller guarantees a mapping of this size that is no longer used.
    unsafe { libc::munmap(pages.as_ptr().cast(), bytes) };
}

pub(crate) fn statm() -> Option<ProcessSizes> {
    let statm = proc::short_file("/proc/self/statm")?;
    let mut pages = statm.split_ascii_whitespace().map(|word| word.parse::<u64>().ok());
    let page = system_value(libc::_SC_PAGESIZE)?;
    let mut bytes = || pages.next()??.checked_mul(page);
    Some(ProcessSizes { vsize: bytes()?, resident: bytes()? })
}

/// A value from `sysconf`; `None` if it is not positive.
#[allow(unsafe_code, reason = "calls the C library")]
fn system_value(name: libc::c_int) -> Option<u64> {
    // SAFETY: `sysconf` has no precondition.
    let value = unsafe { libc::sysconf(name) };
    u64::try_from(value).ok().filter(|value| *value > 0)
}

pub(crate) fn resident_peak() -> Option<u64> {
    proc::status("VmHWM")
}

/// The bytes of the private pages of all mappings, as in Firefox. The `shared` field of `statm` does not provide them.
pub(crate) fn resident_unique() -> Option<u64> {
    let private = |map: &SmapsEntry| {
        ["Private_Clean", "Private_Dirty"].iter().filter_map(|key| map.amount(key)).sum::<u64>()
    };
    match proc::maps_rollup() {
        Some(rollup) => Some(private(&rollup)),
        None => Some(proc::maps()?.iter().map(private).sum()),
    }
}

pub(crate) fn page_faults() -> Option<PageFaults> {
    Some(PageFaults { hard: proc::stat(12)?, soft: proc::stat(10)? })
}

/// The start time of this process: in clock ticks since the machine started, and in seconds since 1970.
#[cfg(feature = "live")]
pub(crate) fn start_time() -> Option<(u64, u64)> {
    let ticks = proc::stat(22)?;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?;
    let alive = proc::uptime()?.saturating_sub(ticks / system_value(libc::_SC_CLK_TCK)?);
    Some((ticks, now.as_secs().saturating_sub(alive)))
}

/// The start time of this process on the clock of [`monotonic_nanoseconds`], to a hundredth of a second.
pub(crate) fn process_start() -> Option<u64> {
    let ticks = proc::stat(22)?;
    let since_boot = u128::from(ticks) * 1_000_000_000 / u128::from(system_value(libc::_SC_CLK_TCK)?);
    // The kernel counts from the boot and includes time in suspend. The monotonic clock does not include suspend.
    let age = u128::from(clock(libc::CLOCK_BOOTTIME)).saturating_sub(since_boot);
    Some(monotonic_nanoseconds().saturating_sub(u64::try_from(age).ok()?))
}

/// The system's monotonic clock.
pub(crate) fn monotonic_nanoseconds() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// The time on a clock, in nanoseconds; 0 if the system does not have the clock.
#[allow(unsafe_code, reason = "calls the system")]
fn clock(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` has room for the result.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return 0;
    }
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

/// The kernel's number of this thread. The function neither allocates nor fails.
#[allow(unsafe_code, reason = "calls the kernel")]
pub(crate) fn thread_id() -> u32 {
    // SAFETY: `gettid` takes no argument and has no precondition.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// All threads with the touched bytes of their stacks, by thread number. `noted` contains thread numbers, and an
/// address on the stack of each thread.
///
/// An address on a stack leads to its mapping. For this thread it is the address of a local variable. For other
/// threads it is the address in `noted` or, if the kernel shows it, the stack pointer of the system call in which the
/// thread waits. As in Firefox, the bytes are the `Referenced` pages of the mapping around that address.
pub(crate) fn thread_stacks(noted: &[(u32, usize)]) -> Vec<StackUsage> {
    let Some(maps) = proc::maps() else { return Vec::new() };
    let stack = |thread: SystemThread| {
        let map = maps.iter().find(|map| thread.is_on(map));
        let bytes = map.and_then(|map| map.amount("Referenced"));
        StackUsage { name: thread.name, tid: thread.tid, bytes }
    };
    let mut stacks: Vec<_> = threads(noted).into_iter().map(stack).collect();
    sort_by(&mut stacks, |a, b| a.tid.cmp(&b.tid));
    stacks
}

struct SystemThread {
    name: String,
    tid: u32,
    /// An address on the thread's stack; `None` if unknown.
    address: Option<usize>,
    main: bool,
}

impl SystemThread {
    fn is_on(&self, map: &SmapsEntry) -> bool {
        match self.address {
            Some(address) => map.contains(address),
            None => self.main && map.name == "[stack]",
        }
    }
}

fn threads(noted: &[(u32, usize)]) -> Vec<SystemThread> {
    let here = 0u8;
    let (own_id, own_address) = (thread_id(), (&raw const here).addr());
    let thread = |tid: u32| {
        let name = proc::thread_name(tid)?;
        let address = if tid == own_id {
            Some(own_address)
        } else if let Some((_, address)) = noted.iter().find(|(noted, _)| *noted == tid) {
            Some(*address)
        } else {
            proc::waiting_at(tid)
        };
        Some(SystemThread { name, tid, address, main: tid == std::process::id() })
    };
    proc::threads().into_iter().filter_map(thread).collect()
}

/// Looks up a symbol in all loaded files.
#[allow(unsafe_code, reason = "calls the loader")]
pub(crate) fn find_symbol(name: &core::ffi::CStr) -> FoundSymbol {
    static HERE: u8 = 0;
    // SAFETY: `name` is a C string.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    let file_of = |address: *const core::ffi::c_void| {
        let mut info = core::mem::MaybeUninit::<libc::Dl_info>::zeroed();
        // SAFETY: `info` has room for the result, and `dladdr` only compares the address.
        unsafe { libc::dladdr(address, info.as_mut_ptr()) };
        // SAFETY: all zeros are a valid `Dl_info`, and `dladdr` keeps the zeros or fills the struct.
        unsafe { info.assume_init() }.dli_fbase
    };
    if symbol.is_null() {
        // Clears the loader's error, so that the program does not take it for its own.
        // SAFETY: `dlerror` has no precondition.
        unsafe { libc::dlerror() };
        FoundSymbol::Nowhere
    } else if file_of(symbol) == file_of((&raw const HERE).cast()) {
        FoundSymbol::Here
    } else {
        FoundSymbol::Elsewhere(symbol)
    }
}

/// The bytes of this process's page tables. They belong to the kernel.
pub(crate) fn page_tables() -> Option<u64> {
    proc::status("VmPTE")
}

/// All mappings of the process. `noted` contains thread numbers, and an address on the stack of each thread.
pub(crate) fn mappings(noted: &[(u32, usize)]) -> Option<Vec<Mapping>> {
    let threads = threads(noted);
    let mapping = |map: &SmapsEntry| {
        let told = |key: &str| map.amount(key).unwrap_or(0);
        let (mut kind, name) = kind_and_name(map);
        if kind == MappingKind::Anonymous && threads.iter().any(|thread| thread.is_on(map)) {
            kind = MappingKind::Stack;
        }
        Mapping {
            kind,
            name,
            resident: told("Rss"),
            proportional: told("Pss"),
            swapped: told("Swap"),
            huge: told("AnonHugePages") + told("ShmemPmdMapped") + told("FilePmdMapped"),
            hugetlb: told("Shared_Hugetlb") + told("Private_Hugetlb"),
        }
    };
    Some(proc::maps()?.iter().map(mapping).collect())
}

fn kind_and_name(map: &SmapsEntry) -> (MappingKind, String) {
    let of_file = match map {
        SmapsEntry { shared: true, .. } => MappingKind::Shared,
        SmapsEntry { executable: true, .. } => MappingKind::Code,
        _ => MappingKind::File,
    };
    let of_memory = if map.shared { MappingKind::Shared } else { MappingKind::Anonymous };
    let name = map.name.as_str();
    match name {
        "" => (of_memory, "[anonymous]".to_owned()),
        "[heap]" => (MappingKind::Heap, name.to_owned()),
        "[stack]" => (MappingKind::Stack, name.to_owned()),
        // In old kernels, `[stack:TID]` is the stack of a thread.
        name if name.starts_with("[stack:") => (MappingKind::Stack, "[stack]".to_owned()),
        // `[anon:NAME]` is memory that the program named.
        name if name.starts_with("[anon") => (of_memory, name.to_owned()),
        name if name.starts_with('[') && name.ends_with(']') => (MappingKind::Kernel, name.to_owned()),
        name => match segment_key(name) {
            Some(key) => (MappingKind::Shared, format!("[SysV segment {key:x}]")),
            None => (of_file, name.to_owned()),
        },
    }
}

/// The key of a System V memory segment, from a name such as `/SYSV0052e2c1 (deleted)`.
fn segment_key(name: &str) -> Option<u32> {
    u32::from_str_radix(name.strip_prefix("/SYSV")?.get(..8)?, 16).ok()
}
