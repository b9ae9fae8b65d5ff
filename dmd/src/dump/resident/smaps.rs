//! The kernel's list of the process's mappings, with the memory of each.

use core::ffi::CStr;
use core::ops::Range;
use std::io::{self, Read};

use crate::system::pages::{self, DumpVec};
use crate::system::raw_file::{self, RawFile};

/// A mapping, as the kernel lists it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KernelMapping {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) access: [u8; 4],
    /// The place of the name in the list's names. Anonymous memory has no name.
    name: (usize, usize),
    pub(super) resident: u64,
    pub(super) swapped: u64,
    /// Resident bytes that the program gave back with `MADV_FREE`: the kernel takes them when it needs memory.
    pub(super) lazy_free: u64,
    /// Bytes of huge pages of hugetlbfs. The kernel does not count them as resident.
    huge_private: u64,
    huge_shared: u64,
}

impl KernelMapping {
    pub(super) fn range(&self) -> Range<usize> {
        self.start..self.end
    }

    /// Whether the mapping has pages in memory or in swap.
    pub(super) fn has_pages(&self) -> bool {
        self.resident + self.swapped > 0 || self.has_huge_reserve()
    }

    /// Whether the mapping has huge pages of the system's reserve.
    pub(super) fn has_huge_reserve(&self) -> bool {
        self.huge_private + self.huge_shared > 0
    }

    pub(super) fn is_writable(&self) -> bool {
        self.access[1] == b'w'
    }
}

/// All mappings of one moment, sorted by address.
pub(super) struct KernelMappings {
    pub(super) all: DumpVec<KernelMapping>,
    names: DumpVec<u8>,
    /// The room of the lines, which are in the list: it stays until the page map is read.
    _room: DumpVec<u8>,
    /// The resident bytes of the process, by the kernel's own sum; `None` on kernels without it.
    pub(super) resident: Option<u64>,
    /// Whether the sum of all mappings differs from the kernel's sum, even in a second list: other threads change the
    /// mappings.
    pub(super) is_changing: bool,
}

/// The kernel's own sum of all mappings, since Linux 4.14.
const SUM: &CStr = c"/proc/thread-self/smaps_rollup";

/// The kernel gives a list in pieces of about one page. A line has a path of at most some thousand bytes.
const PIECE: usize = 64 << 10;

/// Room for mappings and bytes of names that come up while the list is read.
const MORE_MAPPINGS: usize = 64;
const MORE_NAMES: usize = 4096;

impl KernelMappings {
    pub(super) fn read() -> io::Result<Self> {
        let first = Self::read_once(SUM)?;
        if !first.is_changing {
            return Ok(first);
        }
        drop(first);
        Self::read_once(SUM)
    }

    #[cold]
    fn read_once(sum: &CStr) -> io::Result<Self> {
        let mut room = room(PIECE)?;
        let (mut count, mut names) = (MORE_MAPPINGS, MORE_NAMES);
        for_each_line(c"/proc/thread-self/maps", &mut room, &mut |line| {
            count += 1;
            names += header(line).ok_or_else(cut)?.1.len();
            Ok(())
        })?;
        // The room is touched before the list is made, so that reading the list does not change the list.
        let mut list =
            MappingList { all: self::room(count)?, names: self::room(names)?, ..MappingList::default() };
        list.all.clear();
        list.names.clear();
        for_each_line(c"/proc/thread-self/smaps", &mut room, &mut |line| list.line(line))?;
        let mut rollup = [0; 1 << 12];
        let filled = raw_file::read_start(sum, &mut rollup);
        let resident = rollup[..filled].split(|byte| *byte == b'\n').find_map(|line| kib(line, b"Rss:"));
        let mut mappings = list.finish()?;
        let sum = mappings.all.iter().map(|mapping| mapping.resident).sum::<u64>();
        mappings._room = room;
        mappings.resident = resident;
        mappings.is_changing |= resident.is_some_and(|resident| resident != sum);
        Ok(mappings)
    }

    pub(super) fn name(&self, mapping: &KernelMapping) -> &[u8] {
        let (start, end) = mapping.name;
        self.names.get(start..end).unwrap_or_default()
    }

    /// Whether the mapping has private memory without a file.
    pub(super) fn is_anonymous(&self, mapping: &KernelMapping) -> bool {
        let name = self.name(mapping);
        let is_kernels = name.starts_with(b"[v") || name.starts_with(b"[uprobes");
        (name.is_empty() || name.starts_with(b"[")) && !is_kernels && mapping.access[3] == b'p'
    }
}

fn room<T: Clone + Default>(count: usize) -> io::Result<DumpVec<T>> {
    let mut room = pages::list();
    if room.try_reserve_exact(count).is_err() {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    room.resize(count, T::default());
    Ok(room)
}

/// Calls `each` for the lines of a file of the kernel.
#[cold]
fn for_each_line(
    path: &CStr,
    room: &mut [u8],
    each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut file = RawFile::open(path)?;
    let mut filled = 0;
    loop {
        match file.read(&mut room[filled..]) {
            Ok(0) if filled == 0 => return Ok(()),
            // The end is in the middle of a line, or the line is longer than the room.
            Ok(0) => return Err(cut()),
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        let lines = room[..filled].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        for line in room[..lines].split_inclusive(|byte| *byte == b'\n') {
            each(line.strip_suffix(b"\n").unwrap_or(line))?;
        }
        room.copy_within(lines..filled, 0);
        filled -= lines;
    }
}

/// The bytes of a line such as `Rss:        12 kB`.
fn kib(line: &[u8], key: &[u8]) -> Option<u64> {
    let number = line.strip_prefix(key)?.trim_ascii().strip_suffix(b" kB")?;
    str::from_utf8(number).ok()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The error of a list that ends in the middle of a mapping.
fn cut() -> io::Error {
    io::Error::from(io::ErrorKind::UnexpectedEof)
}

/// A list that grows line by line. The kernel gives the list in parts. If a thread moves a border between two parts,
/// the second part may list addresses again: the list has them once, and `overlaps` is set.
struct MappingList {
    all: DumpVec<KernelMapping>,
    names: DumpVec<u8>,
    /// Whether the last mapping has all of its lines.
    is_whole: bool,
    overlaps: bool,
}

impl Default for MappingList {
    fn default() -> Self {
        Self { all: pages::list(), names: pages::list(), is_whole: true, overlaps: false }
    }
}

impl MappingList {
    fn line(&mut self, line: &[u8]) -> io::Result<()> {
        match line.first() {
            Some(b'0'..=b'9' | b'a'..=b'f') => {
                let (mut mapping, name) = header(line).filter(|_| self.is_whole).ok_or_else(cut)?;
                self.is_whole = false;
                mapping.name = self.place_of(name)?;
                let end = self.all.last().map_or(0, |last| last.end);
                self.overlaps |= mapping.start < end;
                mapping.start = mapping.start.max(end);
                mapping.end = mapping.end.max(mapping.start);
                if !pages::push(&mut self.all, mapping) {
                    return Err(io::ErrorKind::OutOfMemory.into());
                }
            }
            Some(_) => {
                let Some(mapping) = self.all.last_mut() else { return Err(cut()) };
                // The last line of each mapping.
                self.is_whole |= line.starts_with(b"VmFlags:");
                for (key, value) in [
                    (&b"Rss:"[..], &mut mapping.resident),
                    (b"Swap:", &mut mapping.swapped),
                    (b"LazyFree:", &mut mapping.lazy_free),
                    (b"Private_Hugetlb:", &mut mapping.huge_private),
                    (b"Shared_Hugetlb:", &mut mapping.huge_shared),
                ] {
                    if let Some(bytes) = kib(line, key) {
                        *value = bytes;
                    }
                }
            }
            None => {}
        }
        Ok(())
    }

    /// The place of a name in the names. The parts of a library have the same name.
    fn place_of(&mut self, name: &[u8]) -> io::Result<(usize, usize)> {
        if let Some(last) = self.all.last()
            && self.names.get(last.name.0..last.name.1) == Some(name)
        {
            return Ok(last.name);
        }
        let start = self.names.len();
        if self.names.try_reserve(name.len()).is_err() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.names.extend_from_slice(name);
        Ok((start, self.names.len()))
    }

    fn finish(mut self) -> io::Result<KernelMappings> {
        if !self.is_whole || self.all.is_empty() {
            return Err(cut());
        }
        // A mapping that is listed twice has no addresses of its own.
        self.all.retain(|mapping| mapping.start < mapping.end);
        let Self { all, names, overlaps, .. } = self;
        Ok(KernelMappings { all, names, _room: pages::list(), resident: None, is_changing: overlaps })
    }
}

/// Parses the first line of a mapping: its range, its access, its offset, the device and the inode number of its file,
/// and its name.
#[cold]
fn header(line: &[u8]) -> Option<(KernelMapping, &[u8])> {
    let mut rest = line;
    let mut column = || {
        let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
        let (column, after) = rest.split_at(end);
        rest = after.trim_ascii_start();
        (!column.is_empty()).then_some(column)
    };
    let (range, access) = (column()?, column()?);
    let [_offset, _device, _number] = [column()?, column()?, column()?];
    let mut bounds = range.split(|byte| *byte == b'-');
    let mut bound = || usize::from_str_radix(str::from_utf8(bounds.next()?).ok()?, 16).ok();
    let (start, end) = (bound()?, bound()?);
    let access = access.try_into().ok()?;
    let mapping = KernelMapping { start, end, access, ..KernelMapping::default() };
    (start < end).then_some((mapping, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
5590-55a0 rw-p 00000000 00:00 0                          [heap]
Size:                 16 kB
Rss:                  12 kB
LazyFree:              4 kB
Swap:                  8 kB
VmFlags: rd wr mr mw me ac sd
7f00-7f10 r-xp 00001000 fe:00 1234                       /usr/lib/a b.so (deleted)
Rss:                   4 kB
VmFlags: rd ex mr mw me sd
7f10-7f20 rw-p 00002000 fe:00 1234                       /usr/lib/a b.so (deleted)
VmFlags: rd wr mr mw me sd
";

    fn parse(text: &str) -> io::Result<KernelMappings> {
        let mut list = MappingList::default();
        text.lines().try_for_each(|line| list.line(line.as_bytes()))?;
        list.finish()
    }

    #[test]
    fn a_list_has_names_and_amounts() {
        let mappings = parse(TEXT).unwrap();
        assert!(!mappings.is_changing);
        let all = &mappings.all;
        let name = |at: usize| str::from_utf8(mappings.name(&all[at])).unwrap();
        let names = (all.len(), name(0), name(1), name(2));
        assert_eq!(names, (3, "[heap]", "/usr/lib/a b.so (deleted)", "/usr/lib/a b.so (deleted)"));
        assert_eq!(mappings.names.len(), "[heap]/usr/lib/a b.so (deleted)".len());
        assert_eq!([0, 1, 2].map(|at| mappings.is_anonymous(&all[at])), [true, false, false]);
        assert_eq!((all[0].range(), all[1].range()), (0x5590..0x55a0, 0x7f00..0x7f10));
        assert_eq!((all[0].resident, all[0].swapped, all[0].lazy_free), (12 << 10, 8 << 10, 4 << 10));
        assert_eq!((all[0].is_writable(), all[1].is_writable()), (true, false));
    }

    #[test]
    fn addresses_that_are_listed_twice_count_once() {
        let mapping = |range: &str| format!("{range} rw-p 00000000 00:00 0 \nRss: 4 kB\nVmFlags: rd\n");
        let check = |ranges: &[&str], expected: &[(usize, usize)]| {
            let text: String = ranges.iter().map(|range| mapping(range)).collect();
            let KernelMappings { all, is_changing, .. } = parse(&text).unwrap();
            assert_eq!(all.iter().map(|mapping| (mapping.start, mapping.end)).collect::<Vec<_>>(), expected);
            assert!(is_changing);
        };
        check(
            &["1000-3000", "2000-5000", "5000-6000"],
            &[(0x1000, 0x3000), (0x3000, 0x5000), (0x5000, 0x6000)],
        );
        check(&["1000-6000", "2000-5000"], &[(0x1000, 0x6000)]);
    }

    #[test]
    fn a_list_that_is_cut_off_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("smaps");
        let path = std::ffi::CString::new(file.to_str().unwrap()).unwrap();
        for length in 0..=TEXT.len() {
            std::fs::write(&file, &TEXT[..length]).unwrap();
            // A room that is hardly longer than the longest line.
            let mut list = MappingList::default();
            let read = for_each_line(&path, &mut [0; 100], &mut |line| list.line(line));
            let parsed = read.and_then(|()| list.finish());
            let is_whole = TEXT[..length].ends_with(" sd\n");
            assert_eq!(parsed.is_ok(), is_whole, "{}", &TEXT[..length]);
        }
        std::fs::write(&file, "1000-2000 rw-p 00000000 00:00 0".repeat(4)).unwrap();
        assert!(for_each_line(&path, &mut [0; 100], &mut |_| Ok(())).is_err());
    }

    #[test]
    fn kernels_without_a_sum_have_the_list() {
        let mappings = KernelMappings::read_once(c"/proc/thread-self/missing").unwrap();
        assert!(mappings.resident.is_none() && !mappings.is_changing);
        assert!(mappings.all.iter().any(|mapping| mappings.name(mapping) == b"[stack]"));
    }
}
