//! Damaged unwind sections: the parser may return any result, but it must end, read only these bytes, and not panic.

use crate::c_library::{FUNCTIONS, build};
use dmd_unwind::Sections;
use object::{Object, ObjectSection};

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % limit
    }
}

/// Bytes with a meaning in these sections: opcodes, encodings, lengths, ends of numbers.
const SPECIAL: [u8; 20] = [
    0x00, 0x01, 0x0a, 0x0b, 0x0c, 0x0e, 0x0f, 0x10, 0x16, 0x2e, 0x2f, 0x40, 0x7f, 0x80, 0x86, 0xc0, 0xff,
    0x28, 0x1b, 0x06,
];

#[test]
fn damaged_sections_are_survived() {
    let folder = tempfile::tempdir().unwrap();
    let library = build(folder.path(), "damaged", FUNCTIONS, &["-O2", "-fomit-frame-pointer"]);
    let data = std::fs::read(library).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let header = file.section_by_name(".eh_frame_hdr").unwrap();
    let frames = file.section_by_name(".eh_frame").unwrap();
    let plt = file.section_by_name(".plt").unwrap();
    let text = file.section_by_name(".text").unwrap();
    let (start, end) = (plt.address() as usize, (text.address() + text.size()) as usize);
    // A stack of pointers into itself and of small numbers.
    let mut stack = vec![0usize; 512];
    let low = stack.as_ptr().addr();
    for (index, word) in stack.iter_mut().enumerate() {
        *word = if index % 3 == 0 { index } else { low + index * 8 };
    }
    let mut random = Random(0x1234_5678_9abc_def1);
    let mut answers = 0;
    for round in 0..20_000 {
        let mut header_bytes = header.data().unwrap().to_vec();
        let mut frame_bytes = frames.data().unwrap().to_vec();
        for _ in 0..1 + random.below(6) {
            let target = if random.below(4) == 0 { &mut header_bytes } else { &mut frame_bytes };
            let at = random.below(target.len());
            target[at] = match random.below(3) {
                0 => random.below(256) as u8,
                1 => SPECIAL[random.below(SPECIAL.len())],
                _ => target[at] ^ 1 << random.below(8),
            };
        }
        if round % 5 == 0 {
            frame_bytes.truncate(random.below(frame_bytes.len()));
        }
        if round % 7 == 0 {
            header_bytes.truncate(random.below(header_bytes.len()));
        }
        let sections = Sections {
            header_address: header.address() as usize,
            header: &header_bytes,
            frames_address: frames.address() as usize,
            frames: &frame_bytes,
        };
        for _ in 0..4 {
            let pc = start + random.below(end - start);
            answers += usize::from(sections.row(pc).is_some());
            sections.rule(pc);
            sections.caller(pc, &stack);
        }
    }
    // Most damage is outside of the parts that matter for a lookup, so most lookups return a result.
    assert!(answers > 30_000, "{answers}");
}

#[test]
fn damaged_expressions_are_survived() {
    let mut random = Random(0xfeed_beef_1357_9bdf);
    let stack: Vec<usize> = (0..64).collect();
    let mut found = 0;
    for _ in 0..50_000 {
        // A handmade CIE and FDE for 0x1000..0x2000, with a CFA expression of random bytes.
        let len = 1 + random.below(24);
        let mut frames = vec![0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0x78, 16];
        frames.extend([0x90, 1]);
        set_length(&mut frames, 0);
        let fde = frames.len();
        frames.extend([0; 4]);
        frames.extend((fde as u32 + 4).to_ne_bytes());
        frames.extend(0x1000u64.to_ne_bytes());
        frames.extend(0x1000u64.to_ne_bytes());
        frames.extend([0x0f, len as u8]);
        for _ in 0..len {
            let byte = match random.below(4) {
                0 => random.below(256) as u8,
                1 => 0x30 + random.below(32) as u8,
                2 => 0x06 + random.below(0x29) as u8,
                _ => [0x76, 0x77][random.below(2)],
            };
            frames.push(byte);
        }
        set_length(&mut frames, fde);
        frames.extend([0; 4]);
        // The header has the absolute address of the frames, and no table.
        let mut header = vec![1, 0, 0xff, 0xff];
        header.extend(0x5000u64.to_ne_bytes());
        let sections =
            Sections { header_address: 0x4000, header: &header, frames_address: 0x5000, frames: &frames };
        assert_eq!(sections.row(0x1800).as_deref(), Some("cfa=expression 16=[cfa-8]"));
        found += usize::from(sections.caller(0x1800, &stack).is_some());
    }
    assert!(found > 100, "{found}");
}

fn set_length(bytes: &mut [u8], at: usize) {
    let len = (bytes.len() - at - 4) as u32;
    bytes[at..at + 4].copy_from_slice(&len.to_ne_bytes());
}
