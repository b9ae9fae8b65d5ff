//! Reads values into a shared buffer.

use super::MemorySource;
use super::window::ReadWindow;

/// The size of one read, in bytes.
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

    /// Reads only the word at an address.
    pub(crate) fn word(&self, address: u64) -> Option<u64> {
        let mut word = [0; 8];
        (self.memory.read(address, &mut word) == word.len()).then(|| u64::from_le_bytes(word))
    }

    /// The readable bytes from an address on, at most `bytes`. Memory is read piece by piece, so that a wrong size
    /// takes no memory.
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
