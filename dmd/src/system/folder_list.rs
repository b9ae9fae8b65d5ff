//! The names in a folder, read without an allocation.

use crate::system::raw_file::RawFile;

/// The bytes of a part of the list.
const LIST: usize = 4096;
/// An entry of a folder consists of an inode, an offset, the length of the entry, a kind, and the name, which ends in
/// 0.
const ENTRY_LENGTH: usize = 16;
const ENTRY_NAME: usize = 19;

/// Calls `each` with each name in the folder.
pub(crate) fn for_each_name(folder: &RawFile, mut each: impl FnMut(&[u8])) {
    let mut list = [0; LIST];
    loop {
        // SAFETY: `list` is a valid place for a part of the list.
        let filled = unsafe {
            libc::syscall(libc::SYS_getdents64, folder.descriptor(), list.as_mut_ptr(), list.len())
        };
        let Some(mut rest) = usize::try_from(filled).ok().and_then(|filled| list.get(..filled)) else {
            break;
        };
        if rest.is_empty() {
            break;
        }
        while let Some(length) = rest.get(ENTRY_LENGTH..ENTRY_LENGTH + 2) {
            let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
            let Some(entry) = rest.get(..length).filter(|entry| entry.len() > ENTRY_NAME) else { break };
            each(entry[ENTRY_NAME..].split(|byte| *byte == 0).next().unwrap_or_default());
            rest = &rest[length..];
        }
    }
}
