//! Reads values into a buffer that all of them share.

use super::MemorySource;
use super::window::ReadWindow;

/// The step in which memory is read.
const PIECE: usize = 1 << 20;

/// A reader of values.
#[derive(Debug)]
pub(crate) struct MemoryReader<'m> {
    memory: &'m dyn MemorySource,
    window: ReadWindow,
    buffer: Vec<u8>,
}

impl<'m> MemoryReader<'m> {
    pub(crate) fn new(memory: &'m dyn MemorySource) -> Self {
        Self { memory, window: ReadWindow::default(), buffer: Vec::new() }
    }

    /// The word at an address, read alone.
    pub(crate) fn word(&self, address: u64) -> Option<u64> {
        let mut word = [0; 8];
        (self.memory.read(address, &mut word) == word.len()).then(|| u64::from_le_bytes(word))
    }

    /// The bytes from an address on, as many as are readable. Memory is read piece by piece, so that a size without memory
    /// takes none.
    pub(crate) fn read(&mut self, address: u64, bytes: u64) -> &[u8] {
        self.buffer.clear();
        if let Some(read) = self.window.read(self.memory, address, bytes) {
            self.buffer.extend_from_slice(read);
            return &self.buffer;
        }
        while (self.buffer.len() as u64) < bytes {
            let start = self.buffer.len();
            let piece = (bytes - start as u64).min(PIECE as u64) as usize;
            self.buffer.resize(start + piece, 0);
            let filled = self.memory.read(address.wrapping_add(start as u64), &mut self.buffer[start..]);
            self.buffer.truncate(start + filled);
            if filled < piece {
                break;
            }
        }
        &self.buffer
    }
}
