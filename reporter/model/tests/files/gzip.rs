//! Compressed files.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

pub(crate) fn gzip(text: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_ref()).unwrap();
    encoder.finish().unwrap()
}

#[cfg(feature = "gzip")]
mod decompressed {
    use super::gzip;
    use crate::{document, error, read, report};

    #[test]
    fn damaged_gzip() {
        let packed = gzip(document(&report("")));
        assert_eq!(error(&packed[..10]), "truncated after 0 bytes");
        assert!(error(&packed[..packed.len() - 4]).starts_with("truncated after "));
        for from_end in [8, 4] {
            let mut wrong = packed.clone();
            let at = wrong.len() - from_end;
            wrong[at] ^= 1;
            assert_eq!(error(wrong), "gzip checksum mismatch");
        }
        let mut trailing = packed.clone();
        trailing.extend(b"garbage");
        assert_eq!(error(trailing), "trailing garbage after the compressed data");
        assert!(error([0x1f, 0x8b, 99, 0, 0, 0, 0, 0, 0, 0, 0]).starts_with("not a valid gzip file: "));
    }

    #[test]
    fn several_gzip_members_are_one_text() {
        let text = document(&report(""));
        let (head, tail) = text.split_at(40);
        assert_eq!(read([gzip(head), gzip(tail)].concat()).unwrap().len(), 1);
    }
}
