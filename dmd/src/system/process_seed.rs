//! A number that is different in each process and in each run.

/// Draws a number without a system call: the kernel gives each program random bytes when it starts.
#[cfg(target_os = "linux")]
pub(crate) fn draw() -> u64 {
    // SAFETY: `getauxval` has no precondition.
    let place = unsafe { libc::getauxval(libc::AT_RANDOM) } as usize;
    let words = core::ptr::with_exposed_provenance::<[u64; 2]>(place);
    if words.is_null() {
        return for_child(0);
    }
    // SAFETY: the kernel has put 16 bytes there, and they do not change.
    let [first, second] = unsafe { words.read_unaligned() };
    // The C library keeps secrets in these bytes. The result must not reveal them.
    mixed(mixed(first) ^ second)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn draw() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};

    RandomState::new().hash_one(std::process::id())
}

/// The number of a forked child whose parent has this number.
pub(crate) fn for_child(number: u64) -> u64 {
    mixed(number ^ u64::from(std::process::id()).rotate_left(32))
}

/// The last steps of Vigna's `SplitMix64`.
fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}
