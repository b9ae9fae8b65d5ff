//! The kernel's list of the process's mappings, with the memory of each.

use core::ffi::CStr;
use core::ops::Range;
use std::io::{self, Read};

use crate::system::pages::{self, DumpVec};
use crate::system::raw_file::RawFile;

/// A mapping, as the kernel lists it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KernelMapping {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) access: [u8; 4],
    /// The place of the name in the list's text. Anonymous memory has no name.
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
        self.resident + self.swapped + self.huge_private + self.huge_shared > 0
    }

    pub(super) fn is_writable(&self) -> bool {
        self.access[1] == b'w'
    }
}

/// All mappings of one moment, sorted by address.
pub(super) struct KernelMappings {
    text: DumpVec<u8>,
    pub(super) all: DumpVec<KernelMapping>,
    /// The resident bytes of the process, by the kernel's own sum; `None` on kernels without it.
    pub(super) resident: Option<u64>,
    /// Whether the sum of all mappings differs from the kernel's sum, even in a second list: other threads change the
    /// mappings.
    pub(super) is_changing: bool,
}

/// The first size of the room for the text: enough for several hundred mappings.
const ROOM: usize = 512 << 10;
/// The maximum size of the text. The kernel allows 65,530 mappings by default, with about 800 bytes of text each.
const MOST_ROOM: usize = 1 << 30;

impl KernelMappings {
    pub(super) fn read() -> io::Result<Self> {
        let first = Self::read_once()?;
        if first.is_changing { Self::read_once() } else { Ok(first) }
    }

    #[cold]
    fn read_once() -> io::Result<Self> {
        let mut text = room(ROOM)?;
        // The room is touched before the list is made, so that reading the list does not change the list.
        loop {
            let filled = read(c"/proc/thread-self/smaps", &mut text)?;
            if filled < text.len() {
                text.truncate(filled);
                break;
            }
            text = room(text.len() * 4)?;
        }
        let mut line = [0; 1 << 12];
        let filled = read(c"/proc/thread-self/smaps_rollup", &mut line).unwrap_or(0);
        let resident = line[..filled].split(|byte| *byte == b'\n').find_map(|line| kib(line, b"Rss:"));
        let (all, overlaps) = parse(&text)?;
        let sum = all.iter().map(|mapping| mapping.resident).sum::<u64>();
        let is_changing = overlaps || resident.is_some_and(|resident| resident != sum);
        Ok(Self { text, all, resident, is_changing })
    }

    pub(super) fn name(&self, mapping: &KernelMapping) -> &[u8] {
        let (start, end) = mapping.name;
        self.text.get(start..end).unwrap_or_default()
    }
}

fn room(bytes: usize) -> io::Result<DumpVec<u8>> {
    let mut text = pages::list();
    if bytes > MOST_ROOM || text.try_reserve_exact(bytes).is_err() {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    text.resize(bytes, 0);
    Ok(text)
}

fn read(path: &CStr, text: &mut [u8]) -> io::Result<usize> {
    let mut file = RawFile::open(path)?;
    let mut filled = 0;
    while filled < text.len() {
        match file.read(&mut text[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
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

/// The mappings of a list, and whether the list contained addresses twice. The kernel gives the list in parts. If a
/// thread changes a mapping at the border of two parts, the second part may list addresses again; the result lists them
/// once.
#[cold]
fn parse(text: &[u8]) -> io::Result<(DumpVec<KernelMapping>, bool)> {
    let mut all: DumpVec<KernelMapping> = pages::list();
    let (mut at, mut is_whole, mut overlaps) = (0, true, false);
    if !text.ends_with(b"\n") {
        return Err(cut());
    }
    for line in text.split(|byte| *byte == b'\n') {
        let start = at;
        at += line.len() + 1;
        match line.first() {
            Some(b'0'..=b'9' | b'a'..=b'f') => {
                let mapping = header(line, start).filter(|_| is_whole).ok_or_else(cut)?;
                is_whole = false;
                let mut mapping = mapping;
                let end = all.last().map_or(0, |last| last.end);
                overlaps |= mapping.start < end;
                mapping.start = mapping.start.max(end);
                mapping.end = mapping.end.max(mapping.start);
                if !pages::push(&mut all, mapping) {
                    return Err(io::ErrorKind::OutOfMemory.into());
                }
            }
            Some(_) => {
                let Some(mapping) = all.last_mut() else { return Err(cut()) };
                // `VmFlags` is the last line of each mapping.
                is_whole |= line.starts_with(b"VmFlags:");
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
    }
    if !is_whole || all.is_empty() {
        return Err(cut());
    }
    // Remove the second entry of a mapping that is listed twice: no addresses are left for it.
    all.retain(|mapping| mapping.start < mapping.end);
    Ok((all, overlaps))
}

/// Parses the first line of a mapping: its range, its access, its offset, the device and the inode number of its file,
/// and its name.
#[cold]
fn header(line: &[u8], at: usize) -> Option<KernelMapping> {
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
    let name = (at + line.len() - rest.len(), at + line.len());
    let access = access.try_into().ok()?;
    (start < end).then_some(KernelMapping { start, end, access, name, ..KernelMapping::default() })
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
";

    #[test]
    fn a_list_has_names_and_amounts() {
        let (all, overlaps) = parse(TEXT.as_bytes()).unwrap();
        assert!(!overlaps);
        let name = |at: usize| &TEXT[all[at].name.0..all[at].name.1];
        assert_eq!((all.len(), name(0), name(1)), (2, "[heap]", "/usr/lib/a b.so (deleted)"));
        assert_eq!((all[0].range(), all[1].range()), (0x5590..0x55a0, 0x7f00..0x7f10));
        assert_eq!((all[0].resident, all[0].swapped, all[0].lazy_free), (12 << 10, 8 << 10, 4 << 10));
        assert_eq!((all[0].is_writable(), all[1].is_writable()), (true, false));
    }

    #[test]
    fn addresses_that_are_listed_twice_count_once() {
        let mapping = |range: &str| format!("{range} rw-p 00000000 00:00 0 \nRss: 4 kB\nVmFlags: rd\n");
        let check = |ranges: &[&str], expected: &[(usize, usize)]| {
            let text: String = ranges.iter().map(|range| mapping(range)).collect();
            let (all, overlaps) = parse(text.as_bytes()).unwrap();
            assert_eq!(all.iter().map(|mapping| (mapping.start, mapping.end)).collect::<Vec<_>>(), expected);
            assert!(overlaps);
        };
        check(
            &["1000-3000", "2000-5000", "5000-6000"],
            &[(0x1000, 0x3000), (0x3000, 0x5000), (0x5000, 0x6000)],
        );
        check(&["1000-6000", "2000-5000"], &[(0x1000, 0x6000)]);
    }

    #[test]
    fn a_list_that_is_cut_off_is_an_error() {
        for length in 0..TEXT.len() {
            let is_whole = TEXT[..length].ends_with("me ac sd\n");
            assert_eq!(parse(&TEXT.as_bytes()[..length]).is_ok(), is_whole, "{}", &TEXT[..length]);
        }
    }
}
