//! Reads the files of `/proc` about this process.
//!
//! The kernel writes these files, but programs choose some names in them. So a reader here accepts any contents: it
//! returns a value or `None`, does not panic, and keeps at most 64 KiB of text at once.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The longest line that is read as a whole. A path in a line has at most one page of bytes, and the kernel may escape
/// a byte as four bytes.
const LONGEST_LINE: u64 = 1 << 16;
/// The largest size of a short file. Real files are far shorter.
const SHORT_FILE: u64 = 1 << 16;

/// The text of a file, at most [`SHORT_FILE`] bytes.
pub(super) fn short_file(path: impl AsRef<Path>) -> Option<String> {
    read_short(path.as_ref())
}

fn read_short(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(SHORT_FILE).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Calls `f` with each line of a file. A line longer than [`LONGEST_LINE`] arrives in pieces.
fn each_line(path: &str, mut f: impl FnMut(&str)) -> Option<()> {
    let mut file = BufReader::new(File::open(path).ok()?);
    let mut line = Vec::new();
    loop {
        line.clear();
        if (&mut file).take(LONGEST_LINE).read_until(b'\n', &mut line).ok()? == 0 {
            return Some(());
        }
        let text = String::from_utf8_lossy(&line);
        f(text.strip_suffix('\n').unwrap_or(&text));
    }
}

/// Parses `KEY:  123 kB`. Returns the key and the amount in bytes.
fn amount(line: &str) -> Option<(&str, u64)> {
    let (key, value) = line.split_once(':')?;
    let number: u64 = value.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    Some((key, number.saturating_mul(1024)))
}

/// An amount from `/proc/self/status`, in bytes.
pub(super) fn status(key: &str) -> Option<u64> {
    let status = short_file("/proc/self/status")?;
    status.lines().filter_map(amount).find(|(found, _)| *found == key).map(|(_, bytes)| bytes)
}

/// Field N of `/proc/self/stat` (N >= 3), as numbered in proc(5). The name before it may contain any characters.
pub(super) fn stat(field: usize) -> Option<u64> {
    stat_field(&short_file("/proc/self/stat")?, field)
}

fn stat_field(stat: &str, field: usize) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(field.checked_sub(3)?)?.parse().ok()
}

/// The time since the machine started, in whole seconds.
#[cfg(any(feature = "live", test))]
pub(super) fn uptime() -> Option<u64> {
    short_file("/proc/uptime")?.split('.').next()?.parse().ok()
}

/// The numbers of the threads of this process.
pub(super) fn threads() -> Vec<u32> {
    let names = names_in(Path::new("/proc/self/task")).unwrap_or_default();
    names.iter().filter_map(|name| name.to_str()?.parse().ok()).collect()
}

/// The names in a folder. Calls the kernel directly, since `opendir` calls `malloc`: a thread of a host must not take
/// the locks of the C library.
#[allow(unsafe_code, reason = "calls the kernel")]
pub(super) fn names_in(folder: &Path) -> io::Result<Vec<OsString>> {
    /// An entry consists of an inode, an offset, its own length, a kind, and a name that ends with a 0.
    const LENGTH: usize = 16;
    const NAME: usize = 19;
    let folder = File::open(folder)?;
    let (mut names, mut list) = (Vec::new(), vec![0_u8; 1 << 15]);
    loop {
        let (descriptor, room) = (folder.as_raw_fd(), list.len());
        // SAFETY: `list` has room for `room` bytes.
        let filled = unsafe { libc::syscall(libc::SYS_getdents64, descriptor, list.as_mut_ptr(), room) };
        let filled = usize::try_from(filled).map_err(|_| io::Error::last_os_error())?;
        let mut rest = &list[..filled];
        if rest.is_empty() {
            return Ok(names);
        }
        while let Some(length) = rest.get(LENGTH..LENGTH + 2) {
            let length = usize::from(u16::from_ne_bytes([length[0], length[1]]));
            let Some(entry) = rest.get(..length).filter(|entry| entry.len() > NAME) else { break };
            let name = entry[NAME..].split(|byte| *byte == 0).next().unwrap_or_default();
            if name != b"." && name != b".." {
                names.push(OsStr::from_bytes(name).to_owned());
            }
            rest = &rest[length..];
        }
    }
}

/// The name of a thread.
pub(super) fn thread_name(tid: u32) -> Option<String> {
    let mut name = short_file(format!("/proc/self/task/{tid}/comm"))?;
    if name.ends_with('\n') {
        name.pop();
    }
    Some(name)
}

/// The stack pointer of a thread that waits in the kernel. Many kernels do not show it.
pub(super) fn waiting_at(tid: u32) -> Option<usize> {
    stack_pointer(&short_file(format!("/proc/self/task/{tid}/syscall"))?)
}

/// Parses a line that ends with the stack pointer and the program counter. `None` for the line `running`.
fn stack_pointer(syscall: &str) -> Option<usize> {
    let mut words = syscall.split_ascii_whitespace().rev().skip(1);
    usize::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()
}

/// One mapping of `/proc/self/smaps`.
#[derive(Debug, Default)]
pub(super) struct SmapsEntry {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) executable: bool,
    pub(super) shared: bool,
    /// The path, `[name]`, or empty.
    pub(super) name: String,
    amounts: Vec<(SmapsKey, u64)>,
}

/// The keys that this crate reads.
const KEYS: [&str; 11] = [
    "Rss",
    "Pss",
    "Referenced",
    "Swap",
    "AnonHugePages",
    "ShmemPmdMapped",
    "FilePmdMapped",
    "Shared_Hugetlb",
    "Private_Hugetlb",
    "Private_Clean",
    "Private_Dirty",
];

/// An index into [`KEYS`].
type SmapsKey = u8;

impl SmapsEntry {
    /// An amount in bytes; `None` if the kernel does not provide it.
    pub(super) fn amount(&self, key: &str) -> Option<u64> {
        self.amounts.iter().find(|(at, _)| KEYS[usize::from(*at)] == key).map(|(_, bytes)| *bytes)
    }

    pub(super) fn contains(&self, address: usize) -> bool {
        (self.start..self.end).contains(&(address as u64))
    }

    /// Parses `start-end perms offset dev inode name`.
    fn parse(line: &str) -> Option<Self> {
        let mut rest = line;
        let mut word = || {
            let (word, tail) = rest.split_once(' ').unwrap_or((rest, ""));
            rest = tail.trim_start_matches(' ');
            word
        };
        let (start, end) = word().split_once('-')?;
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let (start, end) = (hex(start)?, hex(end)?);
        let (rights, _offset, _device, _inode) = (word(), word(), word(), word());
        let (executable, shared) = (rights.contains('x'), rights.contains('s'));
        Some(Self { start, end, executable, shared, name: rest.trim_end().to_owned(), amounts: Vec::new() })
    }
}

/// All mappings with their amounts.
pub(super) fn maps() -> Option<Vec<SmapsEntry>> {
    read_maps("/proc/self/smaps")
}

/// The sums over all mappings, as one mapping; `None` before Linux 4.14.
pub(super) fn maps_rollup() -> Option<SmapsEntry> {
    read_maps("/proc/self/smaps_rollup")?.into_iter().next()
}

fn read_maps(path: &str) -> Option<Vec<SmapsEntry>> {
    let mut maps: Vec<SmapsEntry> = Vec::new();
    each_line(path, |line| {
        if let Some((key, bytes)) = amount(line) {
            let key = KEYS.iter().position(|known| *known == key);
            if let (Some(key), Some(map)) = (key, maps.last_mut()) {
                map.amounts.push((key as SmapsKey, bytes));
            }
        } else if let Some(map) = SmapsEntry::parse(line) {
            maps.push(map);
        }
    })?;
    Some(maps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_lines_give_a_value_or_none() {
        assert_eq!(stat_field("1 (a) b) c) S 7 8", 4), Some(7));
        for odd in ["", ")", "1 (x", "1 (x) S", "1 (x) S -1", "1 (x) S 99999999999999999999"] {
            assert_eq!(stat_field(odd, 4), None, "{odd}");
        }
        assert_eq!(stat_field("1 (x) S 7", 2), None);
        assert_eq!(stack_pointer("0 0x0 0x1 0x2 0x3 0x4 0x5 0x7ffc 0x7fab\n"), Some(0x7ffc));
        assert_eq!(stack_pointer("-1 0x7ffc 0x7fab\n"), Some(0x7ffc));
        for odd in ["", "running\n", "0x1", "x y", "0xfffffffffffffffff 0x1"] {
            assert_eq!(stack_pointer(odd), None, "{odd}");
        }
        assert_eq!(amount("Rss:      12 kB"), Some(("Rss", 12 << 10)));
        assert_eq!(amount("Rss: 18446744073709551615 kB"), Some(("Rss", u64::MAX)));
        for odd in
            ["", ":", "Rss: 12", "Rss: -1 kB", "Rss: kB", "VmFlags: rd wr", "7f00-7f01 rw-p 0 08:01 1 /a:kB"]
        {
            assert_eq!(amount(odd), None, "{odd}");
        }
    }

    #[test]
    fn maps_have_names_with_any_characters() {
        let map = SmapsEntry::parse("7f00-7f10 r-xs 00001000 08:01 42        /a b/c  d (deleted)").unwrap();
        assert_eq!((map.start, map.end, &*map.name), (0x7f00, 0x7f10, "/a b/c  d (deleted)"));
        assert!(map.executable && map.shared && map.contains(0x7f0f) && !map.contains(0x7f10));
        assert_eq!(SmapsEntry::parse("7f00-7f10 rw-p 00000000 00:00 0 ").unwrap().name, "");
        assert_eq!(SmapsEntry::parse("7f00-7f10").unwrap().name, "");
        for odd in ["", "-", "x-y rw-p", "7f00 7f10", "7f00-fffffffffffffffff r"] {
            assert!(SmapsEntry::parse(odd).is_none(), "{odd}");
        }
    }

    #[test]
    fn this_process_has_what_the_kernel_shows() {
        let here = 0_u8;
        let address = (&raw const here).addr();
        let maps = maps().unwrap();
        let own = maps.iter().find(|map| map.contains(address)).unwrap();
        assert!(own.amount("Rss").unwrap() > 0 && own.amount("Nothing").is_none());
        assert!(maps_rollup().unwrap().amount("Private_Dirty").unwrap() > 0);
        assert!(status("VmHWM").unwrap() > 0 && stat(22).unwrap() > 0 && uptime().is_some());
        assert!(threads().iter().all(|tid| thread_name(*tid).is_some()));
    }
}
