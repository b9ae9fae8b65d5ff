//! Finds the pages of this process that are in memory, from the kernel's page map.

use std::fs::File;
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

/// The bytes of a map entry. The map has one entry for each page.
const ENTRY: u64 = 8;
/// The bit of an entry whose page is in memory.
const PRESENT: u64 = 1 << 63;

#[allow(unsafe_code, reason = "calls the C library")]
fn page_size() -> Option<u64> {
    // SAFETY: `sysconf` has no precondition.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).ok().filter(|bytes| bytes.is_power_of_two())
}

/// The bytes of the pages that contain these addresses and that this process has in memory. `None` if the kernel does
/// not show them. The memory at the addresses is not read.
pub(crate) fn resident_in(addresses: Range<usize>) -> Option<u64> {
    if addresses.is_empty() {
        return Some(0);
    }
    let page = page_size()?;
    let first = addresses.start as u64 / page;
    let end = (addresses.end as u64).div_ceil(page);
    let pages = File::open("/proc/self/pagemap").ok()?;
    let mut buffer = [0; 512 * ENTRY as usize];
    let (mut place, mut present) = (first, 0);
    while place < end {
        let wanted = usize::try_from((end - place).saturating_mul(ENTRY)).unwrap_or(buffer.len());
        let wanted = wanted.min(buffer.len());
        match pages.read_at(&mut buffer[..wanted], place * ENTRY) {
            Ok(read) if read >= ENTRY as usize => {
                let (entries, _) = buffer[..read].as_chunks::<{ ENTRY as usize }>();
                present += entries.iter().filter(|entry| u64::from_ne_bytes(**entry) & PRESENT != 0).count();
                place += entries.len() as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            _ => return None,
        }
    }
    Some(present as u64 * page)
}
