//! A hash for values that are stored in files. It must never change.
//!
//! The hash has no seed. So a person who writes data can make runs or stacks collide, but only in that person's tables.

/// A hash of 128 bits.
pub(super) struct TableHash {
    lanes: [u64; 2],
}

impl TableHash {
    pub(super) fn new() -> Self {
        Self { lanes: [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344] }
    }

    /// Each step is a bijection of a lane, so two different words never result in the same lane.
    pub(super) fn word(&mut self, word: u64) {
        let [first, second] = &mut self.lanes;
        *first = (*first ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        *first ^= *first >> 32;
        *second = (*second ^ word.rotate_left(29)).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
        *second ^= *second >> 29;
    }

    /// Adds the length first, so that the borders between texts matter.
    pub(super) fn text(&mut self, text: &str) {
        self.word(text.len() as u64);
        let words = text.as_bytes().chunks(8);
        for word in words {
            let mut bytes = [0; 8];
            bytes[..word.len()].copy_from_slice(word);
            self.word(u64::from_le_bytes(bytes));
        }
    }

    pub(super) fn maybe(&mut self, text: Option<&str>) {
        self.word(u64::from(text.is_some()));
        self.text(text.unwrap_or_default());
    }

    pub(super) fn finish(mut self) -> [u64; 2] {
        let [first, second] = self.lanes;
        self.word(second);
        self.word(first);
        self.word(0);
        self.lanes
    }
}
