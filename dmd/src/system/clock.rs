//! The clock of events. It counts ticks of about ten nanoseconds, which are the same in all threads.
//!
//! The clock is the processor's counter if the counter has a constant rate. Otherwise it is the system's monotonic
//! clock, which takes three times as long to read. Readers of a recording get pairs of ticks and nanoseconds.

use core::sync::atomic::{AtomicU8, Ordering};

/// The number of bits by which a value of the counter is shifted. [`SYSTEM`] before [`start`], and on systems without
/// a usable counter.
static SHIFT: AtomicU8 = AtomicU8::new(SYSTEM);

/// The ticks are the system's nanoseconds, shifted by [`NANOSECONDS_SHIFT`].
const SYSTEM: u8 = u8::MAX;
const NANOSECONDS_SHIFT: u8 = 3;

/// Chooses the counter if there is one. Called once, before the first reading of the clock.
pub(crate) fn start() {
    if let Some(shift) = counter_shift() {
        SHIFT.store(shift, Ordering::Relaxed);
    }
}

/// The length of a tick in picoseconds, to about one percent.
pub(crate) fn tick_picoseconds() -> u64 {
    const SPIN: u64 = 50_000;
    if SHIFT.load(Ordering::Relaxed) == SYSTEM {
        return 1000 << NANOSECONDS_SHIFT;
    }
    let (first_tick, start) = (ticks(), nanoseconds());
    let passed = loop {
        let passed = nanoseconds().saturating_sub(start);
        if passed >= SPIN {
            break passed;
        }
    };
    passed * 1000 / ticks().saturating_sub(first_tick).max(1)
}

/// The time in ticks.
#[inline(always)]
pub(crate) fn ticks() -> u64 {
    match SHIFT.load(Ordering::Relaxed) {
        SYSTEM => nanoseconds() >> NANOSECONDS_SHIFT,
        shift => counter() >> shift,
    }
}

/// Nanoseconds of the system's monotonic clock.
#[cfg(unix)]
#[cold]
#[inline(never)]
pub(crate) fn nanoseconds() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a place for the time.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// Nanoseconds of the system's monotonic clock since the first call.
#[cfg(windows)]
#[cold]
#[inline(never)]
pub(crate) fn nanoseconds() -> u64 {
    static FIRST: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    FIRST.get_or_init(std::time::Instant::now).elapsed().as_nanos() as u64 + 1
}

/// Never called: not all systems have a counter.
#[cfg(engine = "portable")]
fn counter() -> u64 {
    0
}

#[cfg(engine = "portable")]
fn counter_shift() -> Option<u8> {
    None
}

#[cfg(all(engine = "native", target_arch = "x86_64"))]
#[inline(always)]
fn counter() -> u64 {
    // SAFETY: all processors of this architecture have this instruction.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The shift of the counter, if its rate is constant. With processors of 2 to 4 GHz, a tick is 8 to 16 nanoseconds.
#[cfg(all(engine = "native", target_arch = "x86_64"))]
fn counter_shift() -> Option<u8> {
    use core::arch::x86_64::__cpuid;

    const MOST_LEAF: u32 = 0x8000_0000;
    const POWER: u32 = 0x8000_0007;
    const INVARIANT: u32 = 1 << 8;
    #[allow(unused_unsafe, reason = "these functions are safe in later versions of Rust")]
    // SAFETY: all processors of this architecture have this instruction and this leaf.
    let most = unsafe { __cpuid(MOST_LEAF) }.eax;
    #[allow(unused_unsafe, reason = "these functions are safe in later versions of Rust")]
    // SAFETY: as above.
    let is_even = most >= POWER && unsafe { __cpuid(POWER) }.edx & INVARIANT != 0;
    is_even.then_some(5)
}

#[cfg(all(engine = "native", target_arch = "aarch64"))]
#[inline(always)]
fn counter() -> u64 {
    let count: u64;
    // SAFETY: the instruction only reads a register, and Linux allows that.
    unsafe {
        core::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack, preserves_flags));
    };
    count
}

#[cfg(all(engine = "native", target_arch = "aarch64"))]
fn counter_shift() -> Option<u8> {
    let frequency: u64;
    // SAFETY: the instruction only reads a register, and Linux allows that.
    unsafe {
        core::arch::asm!("mrs {}, cntfrq_el0", out(reg) frequency, options(nomem, nostack, preserves_flags));
    };
    // Counters of up to 100 MHz are not shifted, counters of 1 GHz are shifted by 3 bits.
    let ticks_of_ten_nanoseconds = (frequency / 100_000_000).max(1);
    (frequency != 0).then(|| ticks_of_ten_nanoseconds.ilog2() as u8)
}
