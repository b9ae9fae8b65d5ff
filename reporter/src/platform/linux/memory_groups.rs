//! The memory groups (cgroups) that limit this process: its own group and all groups around it, of version 1 or 2.
//!
//! DMD's black box reads these files shortly before the kernel kills the process. So a reading neither allocates nor
//! panics, and uses descriptors for the time of one call only.

use core::ffi::{CStr, c_int};

/// The longest path of a group's file.
const LONGEST_PATH: usize = 1024;
/// The longest line of the kernel's lists that is read. Longer lines are skipped.
const LONGEST_LINE: usize = 4096;

/// The values above this one mean "no limit". Version 1 shows a number near 2^63.
const UNLIMITED: u64 = 1 << 62;

/// The start of a file of the kernel.
pub(super) struct KernelText {
    bytes: [u8; LONGEST_LINE],
    len: usize,
}

/// The own group of the process. Its folder is `path`; the folders around it reach up to the mount point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryGroups {
    path: PathBuffer,
    /// The length of the mount point, where the outermost group is.
    mount: usize,
    is_v2: bool,
}

/// The files of a group that have the same meaning in both versions.
#[derive(Clone, Copy, Debug)]
pub(super) enum GroupFile {
    Current,
    Max,
    /// The bound above which the kernel slows the processes of the group down. Only version 2 has it.
    High,
    Peak,
    Stat,
    Swap,
    Events,
    Pressure,
}

/// A value of a group's `memory.stat`.
#[derive(Clone, Copy, Debug)]
pub(super) enum StatKey {
    Anon,
    File,
    Kernel,
    InactiveFile,
}

impl MemoryGroups {
    /// Finds the groups. `None` if the system has no memory groups, or if the process is in none.
    pub fn find() -> Option<Self> {
        Self::find_in(c"/proc/self/cgroup", c"/proc/self/mountinfo")
    }

    /// Like [`find`](Self::find), with the kernel's lists in other files.
    pub fn find_in(cgroup: &CStr, mountinfo: &CStr) -> Option<Self> {
        let mut group = PathBuffer::EMPTY;
        let mut is_v2 = None;
        each_line(cgroup, |line| {
            let mut fields = line.splitn(3, |byte| *byte == b':');
            let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next())
            else {
                return;
            };
            // A system with both versions has the memory of a process in version 1.
            let is_v1 = controllers.split(|byte| *byte == b',').any(|name| name == b"memory");
            if is_v1 || (controllers.is_empty() && is_v2.is_none()) {
                is_v2 = group.set(path).then_some(!is_v1);
            }
        });
        let is_v2 = is_v2?;
        let mut found = None;
        each_line(mountinfo, |line| {
            if found.is_none() {
                found = Mount::parse(line).filter(|mount| mount.has_memory(is_v2)).and_then(|mount| {
                    let path = mount.folder_of(group.bytes())?;
                    Some(Self { mount: path.1, path: path.0, is_v2 })
                });
            }
        });
        let mut found: Self = found?;
        // The kernel charges the nearest group with a memory controller. The list may also name a group outside of what
        // this process sees. The root group of version 2 has no such file: its numbers are those of the machine.
        while found.file(found.path.len, GroupFile::Current).is_none() {
            let inner = found.path.bytes().get(found.mount..)?;
            let around = found.mount + inner.iter().rposition(|byte| *byte == b'/')?;
            found.path.truncate(around);
        }
        Some(found)
    }

    /// The lengths of the folders of all groups, from the own one to the outermost.
    pub(super) fn folders(&self) -> impl Iterator<Item = usize> {
        let within = self.path.bytes().get(self.mount..).unwrap_or_default();
        let inner = within.iter().enumerate().rev().filter(|(_, byte)| **byte == b'/');
        let around = inner.map(|(at, _)| self.mount + at);
        core::iter::once(self.path.len).chain(around.filter(|len| *len != self.path.len))
    }

    /// The length of the own group's folder.
    pub(super) fn own(&self) -> usize {
        self.path.len
    }

    fn file(&self, folder: usize, file: GroupFile) -> Option<KernelText> {
        let name: &[u8] = match (self.is_v2, file) {
            (true, GroupFile::Current) => b"memory.current",
            (true, GroupFile::Max) => b"memory.max",
            (true, GroupFile::High) => b"memory.high",
            (true, GroupFile::Peak) => b"memory.peak",
            (true, GroupFile::Swap) => b"memory.swap.current",
            (true, GroupFile::Events) => b"memory.events",
            (true, GroupFile::Pressure) => b"memory.pressure",
            (_, GroupFile::Stat) => b"memory.stat",
            (false, GroupFile::Current) => b"memory.usage_in_bytes",
            (false, GroupFile::Max) => b"memory.limit_in_bytes",
            (false, GroupFile::Peak) => b"memory.max_usage_in_bytes",
            (false, GroupFile::Events) => b"memory.oom_control",
            (false, GroupFile::High | GroupFile::Swap | GroupFile::Pressure) => return None,
        };
        let mut path = self.path.clone();
        path.truncate(folder);
        (path.push(b"/") && path.push(name)).then(|| KernelText::read(path.c_str()?)).flatten()
    }

    /// A file with one number. `None` without the file, and for `max`.
    pub(super) fn number(&self, folder: usize, file: GroupFile) -> Option<u64> {
        decimal(self.file(folder, file)?.text().trim_ascii()).filter(|number| *number < UNLIMITED)
    }

    /// A value of `memory.stat`.
    pub(super) fn stat(&self, folder: usize, key: StatKey) -> Option<u64> {
        // In version 1, only the values that start with `total_` contain the groups inside.
        let name: &[u8] = match (self.is_v2, key) {
            (true, StatKey::Anon) => b"anon",
            (true, StatKey::File) => b"file",
            (true, StatKey::Kernel) => b"kernel",
            (true, StatKey::InactiveFile) => b"inactive_file",
            (false, StatKey::Anon) => b"total_rss",
            (false, StatKey::File) => b"total_cache",
            (false, StatKey::InactiveFile) => b"total_inactive_file",
            (false, StatKey::Kernel) => return None,
        };
        self.file(folder, GroupFile::Stat)?.value(name)
    }

    /// A count of `memory.events`: `low`, `high`, `max`, `oom` or `oom_kill`. Version 1 has only `oom_kill`.
    pub(super) fn event(&self, folder: usize, name: &str) -> Option<u64> {
        self.file(folder, GroupFile::Events)?.value(name.as_bytes())
    }

    /// The pressure on the memory of the own group, or of the machine if the kernel has none for the group.
    pub(super) fn pressure(&self) -> Option<KernelText> {
        self.file(self.own(), GroupFile::Pressure).or_else(machine_pressure)
    }
}

/// The pressure on the memory of the machine.
pub(super) fn machine_pressure() -> Option<KernelText> {
    KernelText::read(c"/proc/pressure/memory")
}

/// A mount in the kernel's list.
struct Mount<'a> {
    /// The folder of the file system that is mounted.
    root: &'a [u8],
    /// The place of the mount, with escapes.
    place: &'a [u8],
    kind: &'a [u8],
    options: &'a [u8],
}

impl<'a> Mount<'a> {
    fn parse(line: &'a [u8]) -> Option<Self> {
        let mut words = line.split(|byte| *byte == b' ');
        let (root, place) = (words.nth(3)?, words.next()?);
        words.find(|word| *word == b"-")?;
        let (kind, _, options) = (words.next()?, words.next()?, words.next()?);
        Some(Self { root, place, kind, options })
    }

    fn has_memory(&self, is_v2: bool) -> bool {
        let is_option = |wanted: &[u8]| self.options.split(|byte| *byte == b',').any(|name| name == wanted);
        if is_v2 { self.kind == b"cgroup2" } else { self.kind == b"cgroup" && is_option(b"memory") }
    }

    /// The folder of a group below this mount, and the length of the mount's own path.
    fn folder_of(&self, group: &[u8]) -> Option<(PathBuffer, usize)> {
        let mut path = PathBuffer::EMPTY;
        if !path.push_unescaped(self.place) {
            return None;
        }
        let mount = path.len;
        let root = self.root.strip_suffix(b"/").unwrap_or(self.root);
        let inner = group.strip_prefix(root).filter(|inner| inner.is_empty() || inner.starts_with(b"/"));
        let inner = inner.unwrap_or_default();
        let inner = inner.strip_suffix(b"/").unwrap_or(inner);
        // A group outside of the namespace of this process starts with `/..`.
        if !inner.starts_with(b"/..") && !path.push(inner) {
            return None;
        }
        Some((path, mount))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct PathBuffer {
    /// The path, and zeros.
    bytes: [u8; LONGEST_PATH],
    len: usize,
}

impl PathBuffer {
    const EMPTY: Self = Self { bytes: [0; LONGEST_PATH], len: 0 };

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// Adds bytes. Returns false if they do not fit.
    fn push(&mut self, more: &[u8]) -> bool {
        let end = self.len + more.len();
        // The last byte stays 0.
        let Some(place) = self.bytes.get_mut(self.len..end).filter(|_| end < LONGEST_PATH) else {
            return false;
        };
        place.copy_from_slice(more);
        self.len = end;
        true
    }

    /// Adds a path in which the kernel has written some characters as `\ooo`.
    fn push_unescaped(&mut self, mut text: &[u8]) -> bool {
        while let Some(at) = text.iter().position(|byte| *byte == b'\\') {
            let digits = text.get(at + 1..at + 4).and_then(|digits| str::from_utf8(digits).ok());
            let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) else { break };
            if !self.push(&text[..at]) || !self.push(&[byte]) {
                return false;
            }
            text = &text[at + 4..];
        }
        self.push(text)
    }

    fn set(&mut self, bytes: &[u8]) -> bool {
        self.truncate(0);
        self.push(bytes)
    }

    fn truncate(&mut self, len: usize) {
        if let Some(rest) = self.bytes.get_mut(len..) {
            rest.fill(0);
        }
        self.len = self.len.min(len);
    }

    fn c_str(&self) -> Option<&CStr> {
        CStr::from_bytes_until_nul(&self.bytes).ok()
    }
}

impl KernelText {
    /// Reads the start of a file. `None` if it cannot be opened or read.
    pub(super) fn read(path: &CStr) -> Option<Self> {
        let file = OpenDescriptor::open(path)?;
        let mut text = Self { bytes: [0; LONGEST_LINE], len: 0 };
        while let Some(rest) = text.bytes.get_mut(text.len..).filter(|rest| !rest.is_empty()) {
            match file.read(rest)? {
                0 => break,
                read => text.len += read,
            }
        }
        if text.len == LONGEST_LINE {
            // The last line may be cut within a number.
            text.len = text.text().iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        }
        Some(text)
    }

    pub(super) fn text(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// The number after a key at the start of a line, such as `anon 1234` or `MemTotal:    1234 kB`.
    pub(super) fn value(&self, key: &[u8]) -> Option<u64> {
        let lines = self.text().split(|byte| *byte == b'\n');
        let rest = lines.filter_map(|line| line.strip_prefix(key)).find_map(|rest| {
            let rest = rest.strip_prefix(b":").unwrap_or(rest);
            rest.starts_with(b" ").then_some(rest)
        })?;
        decimal(rest.trim_ascii_start().split(|byte| *byte == b' ').next()?)
    }
}

/// A number that consists of decimal digits only.
pub(super) fn decimal(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| str::from_utf8(digits).ok()?.parse().ok()).flatten()
}

/// A descriptor, open for one reading. A program may close descriptors that it did not open; the standard library's
/// file then aborts a program with debug assertions.
struct OpenDescriptor(c_int);

impl OpenDescriptor {
    #[allow(unsafe_code, reason = "calls the kernel")]
    fn open(path: &CStr) -> Option<Self> {
        // SAFETY: the path ends in 0.
        let descriptor = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        (descriptor >= 0).then_some(Self(descriptor))
    }

    /// Reads into `place`. `None` if that fails.
    #[allow(unsafe_code, reason = "calls the kernel")]
    fn read(&self, place: &mut [u8]) -> Option<usize> {
        // SAFETY: `place` has room for this many bytes.
        let read = unsafe { libc::read(self.0, place.as_mut_ptr().cast(), place.len()) };
        usize::try_from(read).ok()
    }
}

impl Drop for OpenDescriptor {
    #[allow(unsafe_code, reason = "calls the kernel")]
    fn drop(&mut self) {
        // SAFETY: the descriptor is this value's, and closing a closed one fails without an effect.
        unsafe { libc::close(self.0) };
    }
}

/// Calls `each` with each line of a file that is not longer than [`LONGEST_LINE`].
fn each_line(path: &CStr, mut each: impl FnMut(&[u8])) {
    let Some(file) = OpenDescriptor::open(path) else { return };
    let mut bytes = [0; LONGEST_LINE];
    let (mut len, mut is_cut) = (0, false);
    while let Some(read) = bytes.get_mut(len..).and_then(|rest| file.read(rest)).filter(|read| *read > 0) {
        len += read;
        let mut start = 0;
        while let Some(end) = bytes[start..len].iter().position(|byte| *byte == b'\n') {
            if !core::mem::take(&mut is_cut) {
                each(&bytes[start..start + end]);
            }
            start += end + 1;
        }
        bytes.copy_within(start..len, 0);
        len -= start;
        if len == LONGEST_LINE {
            (len, is_cut) = (0, true);
        }
    }
    if len > 0 && !is_cut {
        each(&bytes[..len]);
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::{GroupFile, MemoryGroups, StatKey};
    use crate::platform::limits::BoundKind;
    use crate::platform::linux::memory_bounds::tightest_bound;

    /// A folder with the files of groups and the kernel's lists.
    struct Kernel {
        folder: PathBuf,
        cgroup: String,
        mount: String,
    }

    impl Kernel {
        fn new(name: &str, cgroup: &str, mount: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("memory-groups-{name}-{}", std::process::id()));
            _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder).unwrap();
            Self { folder, cgroup: cgroup.to_owned(), mount: mount.to_owned() }
        }

        fn file(self, path: &str, text: &str) -> Self {
            let path = self.folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
            self
        }

        fn find(&self) -> Option<MemoryGroups> {
            let place = self.folder.join("a mount").to_str().unwrap().replace(' ', "\\040");
            let mount = self.mount.replace("PLACE", &place);
            let (cgroup, mountinfo) = (self.folder.join("cgroup"), self.folder.join("mountinfo"));
            fs::write(&cgroup, &self.cgroup).unwrap();
            fs::write(&mountinfo, format!("{}\n{mount}\n", "x".repeat(9000))).unwrap();
            let text = |path: &Path| CString::new(path.to_str().unwrap()).unwrap();
            MemoryGroups::find_in(&text(&cgroup), &text(&mountinfo))
        }
    }

    impl Drop for Kernel {
        fn drop(&mut self) {
            _ = fs::remove_dir_all(&self.folder);
        }
    }

    const V2: &str = "31 23 0:28 / PLACE rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate";
    const V1: &str = "35 31 0:32 / PLACE rw - cgroup cgroup rw,memory";

    #[test]
    fn the_tightest_group_counts_without_inactive_file_pages() {
        let kernel = Kernel::new("tight", "0::/pod/app\n", V2)
            .file("a mount/pod/app/memory.current", "900\n")
            .file("a mount/pod/app/memory.max", "max\n")
            .file("a mount/pod/app/memory.high", "max\n")
            .file("a mount/pod/memory.current", "1900\n")
            .file("a mount/pod/memory.max", "2000\n")
            .file("a mount/pod/memory.stat", "anon 1000\nfile 700\nkernel 1\ninactive_file 300\n")
            .file("a mount/memory.stat", "anon 1\n");
        let groups = kernel.find().unwrap();
        assert_eq!(groups.folders().count(), 3);
        let bound = tightest_bound(Some(&groups), 0).unwrap();
        assert_eq!((bound.kind, bound.limit, bound.used), (BoundKind::Group, 2000, 1600));
        assert_eq!((bound.left(), bound.permille()), (400, 800));
        // A limit below the use.
        let kernel = kernel.file("a mount/pod/app/memory.max", "600\n");
        let bound = tightest_bound(Some(&groups), 0).unwrap();
        assert_eq!((bound.limit, bound.used, bound.left(), bound.permille()), (600, 900, 0, 1500));
        // A large block would exceed the smaller limit first.
        fs::write(kernel.folder.join("a mount/pod/app/memory.current"), "6\n").unwrap();
        assert_eq!(tightest_bound(Some(&groups), 0).unwrap().limit, 2000);
        assert_eq!(tightest_bound(Some(&groups), 1000).unwrap().limit, 600);
        // The kernel slows the group down before its limit.
        let kernel = kernel.file("a mount/pod/app/memory.high", "500\n");
        assert_eq!(tightest_bound(Some(&groups), 1000).unwrap().limit, 500);
        drop(kernel);
    }

    #[test]
    fn version_1_has_other_names() {
        let lists = "5:memory,cpu:/app\n4:cpuacct:/x\n0::/y\n";
        let kernel = Kernel::new("v1", lists, V1)
            .file("a mount/app/memory.usage_in_bytes", "900\n")
            .file("a mount/app/memory.limit_in_bytes", "9223372036854771712\n")
            .file("a mount/memory.usage_in_bytes", "950\n")
            .file("a mount/memory.limit_in_bytes", "1000\n")
            .file("a mount/memory.stat", "inactive_file 7\ntotal_inactive_file 50\ntotal_rss 5\n")
            .file("a mount/app/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
        let groups = kernel.find().unwrap();
        let bound = tightest_bound(Some(&groups), 0).unwrap();
        assert_eq!((bound.limit, bound.used), (1000, 900));
        assert_eq!(groups.event(groups.own(), "oom_kill"), Some(3));
        assert_eq!(groups.event(groups.own(), "oom"), None);
        assert_eq!(groups.stat(groups.mount, StatKey::Anon), Some(5));
        assert_eq!(groups.number(groups.own(), GroupFile::Max), None);
    }

    #[test]
    fn a_group_may_be_outside_of_the_mount() {
        for (name, cgroup, mount) in [
            ("outer", "0::/../other\n", V2),
            ("gone", "0::/a/b\n", V2),
            ("mounted", "3:memory:/docker/1\n", "35 31 0:32 /docker/1 PLACE rw - cgroup cgroup rw,memory"),
        ] {
            let kernel = Kernel::new(name, cgroup, mount)
                .file("a mount/memory.current", "4\n")
                .file("a mount/memory.usage_in_bytes", "4\n");
            let groups = kernel.find().unwrap();
            assert_eq!(groups.number(groups.own(), GroupFile::Current), Some(4), "{name}");
            assert_eq!(groups.folders().count(), 1, "{name}");
        }
    }

    #[test]
    fn a_group_without_memory_files_belongs_to_the_nearest_group_around_it() {
        let kernel = Kernel::new("inner", "0::/pod/app/worker\n", V2)
            .file("a mount/pod/app/worker/cgroup.procs", "")
            .file("a mount/pod/memory.current", "1900\n")
            .file("a mount/pod/memory.max", "2000\n")
            .file("a mount/pod/memory.stat", "anon 1000\ninactive_file 300\n")
            .file("a mount/memory.stat", "anon 1\n");
        let groups = kernel.find().unwrap();
        assert_eq!(groups.stat(groups.own(), StatKey::Anon), Some(1000));
        assert_eq!(groups.folders().count(), 2);
        let bound = tightest_bound(Some(&groups), 0).unwrap();
        assert_eq!((bound.kind, bound.limit, bound.used), (BoundKind::Group, 2000, 1600));
        // The root group of version 2 has only the machine's numbers.
        let root = Kernel::new("root", "0::/app\n", V2).file("a mount/memory.stat", "anon 1\n");
        assert_eq!(root.find(), None);
    }

    #[test]
    fn a_number_is_not_cut() {
        let text = format!("{}\nanon 123456\n", "x".repeat(super::LONGEST_LINE - 9));
        let kernel = Kernel::new("cut", "0::/\n", V2)
            .file("a mount/memory.current", "1\n")
            .file("a mount/memory.stat", &text);
        let groups = kernel.find().unwrap();
        assert_eq!(groups.stat(groups.own(), StatKey::Anon), None);
    }

    #[test]
    fn without_groups_the_machine_is_the_limit() {
        let machine = tightest_bound(None, 0).unwrap();
        assert!(machine.limit > 0 && machine.permille() <= 1000, "{machine:?}");
        for (name, cgroup, mount) in [
            ("empty", "", ""),
            ("unmounted", "0::/\n", "31 23 0:28 / PLACE rw - tmpfs tmpfs rw"),
            ("odd", "\n:::\n0:memory\n", V1),
            ("short", "0::/\n", "31 23 -"),
        ] {
            assert_eq!(Kernel::new(name, cgroup, mount).find(), None, "{name}");
        }
        let kernel = Kernel::new("numbers", "0::/\n", V2).file("a mount/memory.current", "-1\n");
        let groups = kernel.find().unwrap();
        for odd in ["", "-1", "+1", "18446744073709551616", "4611686018427387904", "1 2", "\0"] {
            fs::write(kernel.folder.join("a mount/memory.max"), odd).unwrap();
            assert_eq!(groups.number(groups.own(), GroupFile::Max), None, "{odd:?}");
        }
        let long = Kernel::new("long", &format!("0::/{}\n", "a".repeat(2000)), V2);
        assert_eq!(long.find(), None);
    }
}
