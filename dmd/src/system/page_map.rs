//! The pages of this process, by the kernel's page map: which are in memory, and which are swapped out.
//!
//! Since Linux 6.7, a request returns the pages as ranges. It also shows which pages are pages of zeros: they were read
//! and never written, and take no memory of their own. Older kernels return eight bytes for each page.

use core::ops::Range;
use std::io;

use super::mapping::page_size;
use super::pages::{self, DumpVec};
use super::raw_file::RawFile;

/// Neighbouring pages that are all in memory, or all swapped out. Pages outside of all runs have no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PageRun {
    start: usize,
    end: usize,
    swapped: bool,
}

/// The bytes of a range of addresses that are in memory, and the bytes that are swapped out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageBytes {
    pub(crate) resident: u64,
    pub(crate) swapped: u64,
}

impl PageBytes {
    pub(crate) fn add(&mut self, other: Self) {
        self.resident += other.resident;
        self.swapped += other.swapped;
    }
}

/// A mapping whose pages are read.
pub(crate) struct PagesWanted {
    pub(crate) range: Range<usize>,
    /// The bytes in memory, as the kernel counts them for the mapping. They do not include pages of zeros.
    pub(crate) resident: u64,
    /// Whether the mapping has private memory without a file.
    pub(crate) is_anonymous: bool,
}

/// The pages of some mappings.
pub(crate) struct PageMap {
    runs: DumpVec<PageRun>,
    page: usize,
}

/// The end of the map at a time. A later run may extend the last run.
#[derive(Clone, Copy)]
struct RunMark {
    runs: usize,
    end: usize,
}

/// The request of Linux 6.7, `PAGEMAP_SCAN`.
const SCAN: libc::Ioctl = 0xc060_6610_u32 as libc::Ioctl;

const IS_PRESENT: u64 = 1 << 3;
const IS_SWAPPED: u64 = 1 << 4;
const IS_ZERO_PAGE: u64 = 1 << 5;

/// The argument of the request, the kernel's `struct pm_scan_arg`.
#[repr(C)]
#[derive(Default)]
struct ScanRequest {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// A range that the request returns, the kernel's `struct page_region`.
#[repr(C)]
#[derive(Clone, Copy)]
struct ScannedRange {
    start: u64,
    end: u64,
    categories: u64,
}

const SCANNED: usize = 512;

// The bits of an entry of the page map.
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const FILE: u64 = 1 << 61;
const EXCLUSIVE: u64 = 1 << 56;

/// The size of an entry of the page map in bytes.
const ENTRY: usize = size_of::<u64>();

/// The number of entries that are read at once.
const ENTRIES: usize = 4096;

impl PageMap {
    /// Reads the pages of mappings, which are sorted by address.
    #[cold]
    pub(crate) fn read(wanted: impl Iterator<Item = PagesWanted>) -> io::Result<Self> {
        let file = RawFile::open(c"/proc/thread-self/pagemap")?;
        let mut map = Self { runs: pages::list(), page: page_size() as usize };
        let mut has_scan = true;
        for wanted in wanted {
            if has_scan {
                let begun = map.mark();
                match map.scan(&file, &wanted.range) {
                    Ok(resident) if !map.may_have_huge_zeros(&wanted, resident) => continue,
                    Ok(_) => {
                        map.drop_huge_zeros(&file, &wanted.range, begun)?;
                        continue;
                    }
                    // An older kernel, or a sandbox that does not know the request.
                    Err(_) => has_scan = false,
                }
            }
            map.read_entries(&file, &wanted)?;
        }
        Ok(map)
    }

    /// Whether a scan may have counted a huge page of zeros: some kernels do not mark it in scans.
    fn may_have_huge_zeros(&self, wanted: &PagesWanted, resident: u64) -> bool {
        wanted.is_anonymous && resident >= wanted.resident + self.huge_page() as u64
    }

    /// The size of a huge page in bytes: one page of the page table has the entries of its pages.
    fn huge_page(&self) -> usize {
        self.page * (self.page / ENTRY)
    }

    /// Removes huge pages of zeros from the runs of an anonymous mapping. Reads one entry for each huge page that may be
    /// one: the mapping may also have grown since the kernel counted its pages, and may be very large.
    #[cold]
    fn drop_huge_zeros(&mut self, file: &RawFile, range: &Range<usize>, begun: RunMark) -> io::Result<()> {
        let huge = self.huge_page();
        let mut found: DumpVec<PageRun> = pages::list();
        // The scan may have extended the last run of the mapping before.
        let own = &self.runs[begun.runs.saturating_sub(1)..];
        if found.try_reserve_exact(own.len()).is_err() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        found.extend(own.iter().filter(|run| run.end > range.start).copied());
        self.rewind(begun);
        for PageRun { start, end, swapped } in found.iter().copied() {
            let mut begin = start.max(range.start);
            let mut at = if swapped { end } else { begin.next_multiple_of(huge) };
            while at.saturating_add(huge) <= end {
                let mut entry = [0; ENTRY];
                if !file.read_exact_at(&mut entry, (at / self.page * ENTRY) as u64) {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                if u64::from_ne_bytes(entry) & (PRESENT | FILE) == PRESENT | FILE {
                    self.add(begin..at, swapped)?;
                    begin = at + huge;
                }
                at += huge;
            }
            self.add(begin..end, swapped)?;
        }
        Ok(())
    }

    fn mark(&self) -> RunMark {
        RunMark { runs: self.runs.len(), end: self.runs.last().map_or(0, |run| run.end) }
    }

    /// Removes all pages that were added since a mark.
    fn rewind(&mut self, mark: RunMark) {
        self.runs.truncate(mark.runs);
        if let Some(last) = self.runs.last_mut() {
            last.end = mark.end;
        }
    }

    /// Adds the pages of a range. Returns the bytes in memory.
    #[cold]
    fn scan(&mut self, file: &RawFile, range: &Range<usize>) -> io::Result<u64> {
        let begun = self.mark();
        let mut resident = 0;
        let mut found = [ScannedRange { start: 0, end: 0, categories: 0 }; SCANNED];
        let mut start = range.start as u64;
        while start < range.end as u64 {
            let mut request = ScanRequest {
                size: size_of::<ScanRequest>() as u64,
                start,
                end: range.end as u64,
                vec: found.as_mut_ptr().expose_provenance() as u64,
                vec_len: SCANNED as u64,
                category_anyof_mask: IS_PRESENT | IS_SWAPPED,
                return_mask: IS_PRESENT | IS_SWAPPED | IS_ZERO_PAGE,
                ..ScanRequest::default()
            };
            // SAFETY: the request has the kernel's layout, and `found` is a place for `vec_len` ranges.
            let count = unsafe { libc::ioctl(file.descriptor(), SCAN, &raw mut request) };
            let Ok(count) = usize::try_from(count) else {
                let error = io::Error::last_os_error();
                if error.kind() == io::ErrorKind::Interrupted {
                    continue;
                }
                self.rewind(begun);
                return Err(error);
            };
            for range in found.iter().take(count) {
                if range.categories & IS_ZERO_PAGE == 0 {
                    let swapped = range.categories & IS_PRESENT == 0;
                    resident += if swapped { 0 } else { range.end - range.start };
                    self.add(range.start as usize..range.end as usize, swapped)?;
                }
            }
            if request.walk_end <= start {
                self.rewind(begun);
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            start = request.walk_end;
        }
        Ok(resident)
    }

    /// Reads an entry for each page, for older kernels. The map does not mark pages of zeros. The entry of such a page
    /// has neither the bit for files nor the bit for exclusive pages; a page that a fork shares has neither, too. If the
    /// kernel's count of resident pages is nearer to the count of present pages without these entries than to the count
    /// with them, then these pages are pages of zeros. The entry of a huge page of zeros has the bit for files, even in a
    /// mapping without a file.
    #[cold]
    fn read_entries(&mut self, file: &RawFile, wanted: &PagesWanted) -> io::Result<()> {
        let PagesWanted { range, resident, is_anonymous } = wanted;
        let begun = self.mark();
        let (mut present, mut alike) = (0, 0);
        for counts_alike in [true, false] {
            self.rewind(begun);
            let mut bytes = [0; ENTRIES * ENTRY];
            let mut at = range.start;
            while at < range.end {
                let pages = ((range.end - at) / self.page).min(ENTRIES);
                if !file.read_exact_at(&mut bytes[..pages * ENTRY], (at / self.page * ENTRY) as u64) {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                let (entries, _) = bytes[..pages * ENTRY].as_chunks::<ENTRY>();
                for entry in entries.iter().map(|entry| u64::from_ne_bytes(*entry)) {
                    if *is_anonymous && entry & (PRESENT | FILE) == PRESENT | FILE {
                        at += self.page;
                        continue;
                    }
                    let looks_zero = entry & PRESENT != 0 && entry & (FILE | EXCLUSIVE) == 0;
                    if counts_alike {
                        present += u64::from(entry & PRESENT != 0);
                        alike += u64::from(looks_zero);
                    }
                    if entry & (PRESENT | SWAPPED) != 0 && (counts_alike || !looks_zero) {
                        self.add(at..at + self.page, entry & PRESENT == 0)?;
                    }
                    at += self.page;
                }
            }
            let counted = *resident / self.page as u64;
            let are_zeros = alike > 0 && counted.abs_diff(present - alike) < counted.abs_diff(present);
            if !are_zeros {
                break;
            }
        }
        Ok(())
    }

    fn add(&mut self, range: Range<usize>, swapped: bool) -> io::Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        if let Some(last) = self.runs.last_mut()
            && (last.end, last.swapped) == (range.start, swapped)
        {
            last.end = range.end;
            return Ok(());
        }
        let run = PageRun { start: range.start, end: range.end, swapped };
        if pages::push(&mut self.runs, run) { Ok(()) } else { Err(io::ErrorKind::OutOfMemory.into()) }
    }

    /// The size of a page in bytes.
    pub(crate) fn page(&self) -> usize {
        self.page
    }

    /// The bytes of a range of addresses. `near` is the place in the map that an earlier call has found, so calls in
    /// the order of addresses take little time.
    #[inline]
    pub(crate) fn bytes(&self, range: &Range<usize>, near: &mut usize) -> PageBytes {
        let ends_later = |at: usize| self.runs.get(at).is_none_or(|run| run.end > range.start);
        let starts_here = *near == 0 || self.runs.get(*near - 1).is_some_and(|run| run.end <= range.start);
        if !starts_here || !ends_later(*near) {
            let is_next = ends_later(*near + 1) && starts_here;
            *near = if is_next { *near + 1 } else { self.runs.partition_point(|run| run.end <= range.start) };
        }
        let mut bytes = PageBytes::default();
        for run in self.runs.iter().skip(*near).take_while(|run| run.start < range.end) {
            let common = (run.end.min(range.end) - run.start.max(range.start)) as u64;
            if run.swapped { bytes.swapped += common } else { bytes.resident += common }
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_range_are_its_parts_of_pages() {
        let mut map = PageMap { runs: pages::list(), page: 4096 };
        for (start, end, swapped) in [(1, 3, false), (3, 4, true), (8, 9, false)] {
            map.add(start * 4096..end * 4096, swapped).unwrap();
        }
        let check = |start: usize, end: usize, resident: u64, swapped: u64| {
            for near in 0..4 {
                let mut near = near;
                let bytes = map.bytes(&(start..end), &mut near);
                assert_eq!((bytes.resident, bytes.swapped), (resident, swapped), "{start}..{end}");
            }
        };
        check(0, 4096, 0, 0);
        check(0, 4097, 1, 0);
        check(5000, 5016, 16, 0);
        check(3 * 4096 - 16, 3 * 4096 + 16, 16, 16);
        check(0, 1 << 20, 3 * 4096, 4096);
        check(9 * 4096, 10 * 4096, 0, 0);
    }

    /// Memory of known shapes, read in both ways.
    #[cfg(target_os = "linux")]
    mod both_ways {
        use super::*;

        const MIB: usize = 1 << 20;

        struct Shape(*mut u8, usize);

        impl Shape {
            fn new(bytes: usize) -> Self {
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
                let access = libc::PROT_READ | libc::PROT_WRITE;
                // SAFETY: a new mapping anywhere.
                let start = unsafe { libc::mmap(core::ptr::null_mut(), bytes, access, flags, -1, 0) };
                assert_ne!(start, libc::MAP_FAILED);
                let shape = Self(start.cast(), bytes);
                shape.advise(libc::MADV_NOHUGEPAGE);
                shape
            }

            fn advise(&self, advice: i32) {
                // SAFETY: the range is this mapping.
                unsafe { libc::madvise(self.0.cast(), self.1, advice) };
            }

            fn bytes(&mut self) -> &mut [u8] {
                // SAFETY: the mapping lives as long as this value, and has one reference at a time.
                unsafe { core::slice::from_raw_parts_mut(self.0, self.1) }
            }

            /// The pages by scans, and by entries.
            fn read(&self, resident: usize) -> [Vec<PageRun>; 2] {
                let range = self.0.addr()..self.0.addr() + self.1;
                let wanted = PagesWanted { range, resident: resident as u64, is_anonymous: true };
                let file = RawFile::open(c"/proc/thread-self/pagemap").unwrap();
                let mut entries = PageMap { runs: pages::list(), page: page_size() as usize };
                entries.read_entries(&file, &wanted).unwrap();
                let any = PageMap::read([wanted].into_iter()).unwrap();
                [any, entries].map(|map| map.runs.iter().copied().collect())
            }

            fn check(&self, resident: usize, ranges: &[Range<usize>]) {
                let start = self.0.addr();
                let run = |range: &Range<usize>| PageRun {
                    start: start + range.start,
                    end: start + range.end,
                    swapped: false,
                };
                let expected: Vec<PageRun> = ranges.iter().map(run).collect();
                assert_eq!(self.read(resident), [expected.clone(), expected]);
            }
        }

        impl Drop for Shape {
            fn drop(&mut self) {
                // SAFETY: the mapping belongs to this value.
                unsafe { libc::munmap(self.0.cast(), self.1) };
            }
        }

        #[test]
        fn written_pages_are_resident() {
            let page = page_size() as usize;
            let mut shape = Shape::new(64 * MIB);
            shape.check(0, &[]);
            // More entries than are read at once.
            for at in [3, 4, 5, ENTRIES, 2 * ENTRIES + 1] {
                shape.bytes()[at * page] = 1;
            }
            let range = |first: usize, last: usize| first * page..(last + 1) * page;
            let last = 2 * ENTRIES + 1;
            shape.check(5 * page, &[range(3, 5), range(ENTRIES, ENTRIES), range(last, last)]);
        }

        #[test]
        fn pages_of_zeros_are_not_resident() {
            let page = page_size() as usize;
            let mut shape = Shape::new(MIB);
            let read = shape.bytes().iter().step_by(page).map(|byte| u32::from(*byte)).sum::<u32>();
            assert_eq!(read, 0);
            shape.check(0, &[]);
            shape.bytes()[8 * page] = 1;
            shape.bytes()[10 * page] = 1;
            shape.check(2 * page, &[8 * page..9 * page, 10 * page..11 * page]);
        }

        #[test]
        fn huge_pages_of_zeros_are_not_resident() {
            let mut shape = Shape::new(8 * MIB);
            shape.advise(libc::MADV_HUGEPAGE);
            let read = shape.bytes().iter().step_by(2 * MIB).map(|byte| u32::from(*byte)).sum::<u32>();
            assert_eq!(read, 0);
            // Without huge pages in the system, these are small pages of zeros.
            shape.check(0, &[]);
        }

        /// A mapping that has grown since the kernel counted its pages, below one whose pages touch it.
        #[test]
        fn pages_that_the_kernel_did_not_count_stay() {
            let mut shape = Shape::new(8 * MIB);
            shape.bytes().fill(1);
            let start = shape.0.addr();
            let wanted = |from: usize, to: usize, resident: usize| PagesWanted {
                range: start + from..start + to,
                resident: resident as u64,
                is_anonymous: true,
            };
            let both = [wanted(0, MIB, MIB), wanted(MIB, 8 * MIB, 0)];
            let map = PageMap::read(both.into_iter()).unwrap();
            let run = PageRun { start, end: start + 8 * MIB, swapped: false };
            assert_eq!(map.runs.iter().copied().collect::<Vec<_>>(), [run]);
        }
    }
}
