//! Decides whether a program can start with this library in `$LD_PRELOAD`. A file is untrusted: each number in it is
//! checked.

/// The kind of a file, from its first bytes.
pub(crate) enum Executable<'f> {
    /// A script with this interpreter.
    Script(&'f [u8]),
    /// A program that can start with this library in `$LD_PRELOAD`, or a file of an unknown kind.
    Preloadable,
    /// A program whose loader fails or prints an error with this library, or whose sanitizer must be loaded first.
    Other,
}

const EXECUTABLE: &[u8] = b"\x7fELF";
const BITS_64: u8 = 2;
const LITTLE_ENDIAN: u8 = 1;
#[cfg(target_arch = "x86_64")]
const MACHINE: u64 = 62;
#[cfg(target_arch = "aarch64")]
const MACHINE: u64 = 183;

const LOAD: u64 = 1;
const DYNAMIC: u64 = 2;
const INTERPRETER: u64 = 3;
const END: u64 = 0;
const STRINGS: u64 = 5;
const STRINGS_SIZE: u64 = 10;

/// Names of libraries and functions of sanitizers. A program that needs one of these libraries, or calls one of these
/// functions, is built with a sanitizer.
const SANITIZERS: [&[u8]; 10] = [
    b"\0libasan.so",
    b"\0libtsan.so",
    b"\0liblsan.so",
    b"\0libhwasan.so",
    b"\0libclang_rt.",
    b"\0__asan_init\0",
    b"\0__tsan_init\0",
    b"\0__msan_init\0",
    b"\0__lsan_init\0",
    b"\0__hwasan_init\0",
];

struct LoadSegment {
    kind: u64,
    offset: u64,
    address: u64,
    length: u64,
}

/// The little-endian number in some bytes, at most 8, at a position.
fn number(file: &[u8], at: u64, bytes: usize) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let bytes = file.get(at..at.checked_add(bytes)?)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

fn part(file: &[u8], at: u64, length: u64) -> Option<&[u8]> {
    let (at, length) = (usize::try_from(at).ok()?, usize::try_from(length).ok()?);
    file.get(at..)?.get(..length.min(file.len() - at))
}

impl<'f> Executable<'f> {
    pub(crate) fn recognize(file: &'f [u8]) -> Self {
        if let Some(line) = file.strip_prefix(b"#!") {
            let line =
                line.get(..256).unwrap_or(line).split(|byte| *byte == b'\n').next().unwrap_or_default();
            let name = line.trim_ascii().split(u8::is_ascii_whitespace).next().unwrap_or_default();
            return Self::Script(name);
        }
        match is_other(file) {
            Some(true) => Self::Other,
            _ => Self::Preloadable,
        }
    }
}

/// Whether the program is of the kind `Other`. `None` if the file lacks the parts that contain this information.
fn is_other(file: &[u8]) -> Option<bool> {
    file.strip_prefix(EXECUTABLE)?;
    if number(file, 4, 1)? != u64::from(BITS_64) || number(file, 5, 1)? != u64::from(LITTLE_ENDIAN) {
        return Some(true);
    }
    if number(file, 18, 2)? != MACHINE {
        return Some(true);
    }
    let (first, size, count) = (number(file, 32, 8)?, number(file, 54, 2)?, number(file, 56, 2)?);
    let segment = |index: u64| {
        let at = first.checked_add(index * size)?;
        let field = |offset: u64, bytes| number(file, at.checked_add(offset)?, bytes);
        Some(LoadSegment {
            kind: field(0, 4)?,
            offset: field(8, 8)?,
            address: field(16, 8)?,
            length: field(32, 8)?,
        })
    };
    let segments = || (0..count).map_while(segment);
    let loader = segments().find(|segment| segment.kind == INTERPRETER)?;
    if contains(part(file, loader.offset, loader.length)?, b"ld-musl") {
        return Some(true);
    }
    let dynamic = segments().find(|segment| segment.kind == DYNAMIC)?;
    let (mut strings, mut length) = (None, None);
    for entry in part(file, dynamic.offset, dynamic.length)?.chunks_exact(16) {
        let value = number(entry, 8, 8);
        match number(entry, 0, 8)? {
            END => break,
            STRINGS => strings = value,
            STRINGS_SIZE => length = value,
            _ => {}
        }
    }
    let address = strings?;
    let offset = segments().filter(|segment| segment.kind == LOAD).find_map(|segment| {
        let within = address.checked_sub(segment.address).filter(|within| *within < segment.length)?;
        segment.offset.checked_add(within)
    })?;
    let names = part(file, offset, length?)?;
    Some(SANITIZERS.iter().any(|name| contains(names, name)))
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window == word)
}
