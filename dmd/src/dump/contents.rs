//! Reads the words of blocks. Other threads may free the blocks during the read. So this module reads through the
//! kernel, which returns an error for memory that is no longer mapped: a direct read would end the process.

use std::io;

use crate::system::own_memory::OwnMemory;

const WORD: usize = size_of::<usize>();
const WINDOW: usize = 4096;

pub(super) struct BlockReader {
    memory: OwnMemory,
    window: [u8; WINDOW],
}

impl BlockReader {
    pub(super) fn open() -> Self {
        Self { memory: OwnMemory::open(), window: [0; WINDOW] }
    }

    /// Calls `each` for the whole words of a block. If a piece of [`WINDOW`] bytes cannot be read completely, all its
    /// words are 0.
    pub(super) fn for_each_word(
        &mut self,
        start: usize,
        bytes: usize,
        mut each: impl FnMut(usize) -> io::Result<()>,
    ) -> io::Result<()> {
        let bytes = bytes / WORD * WORD;
        let mut done = 0;
        while done < bytes {
            let window = &mut self.window[..WINDOW.min(bytes - done)];
            if !self.memory.read(start + done, window) {
                window.fill(0);
            }
            for word in window.chunks_exact(WORD) {
                each(usize::from_ne_bytes(word.try_into().expect("chunks of a word")))?;
            }
            done += window.len();
        }
        Ok(())
    }
}
