//! The dumps that a black box keeps in a folder: their names, and the last sign of life in a file.
//!
//! The time is first in a name, so that names sort by time. While the file is being written, its name ends in
//! [`PARTIAL`]; the partial file of a killed process keeps this name.
//!
//! The header of the compressed file has a field of its own ([`LifeSign`]). The process overwrites this field as long
//! as it lives, so the file shows how much later the process died, and how much more memory it had by then.

use core::fmt;

/// The end of the name of a file that is not complete.
pub const PARTIAL: &str = ".partial";
const START: &str = "dmd.";
const END: &str = ".json.gz";

/// The reason for a dump of a black box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DumpReason {
    /// The used memory reached the fraction of the limit, or came much closer to the limit.
    Limit,
    /// At its current rate of growth, the used memory would have reached the limit within moments.
    Predicted,
    /// The used memory was a fifth larger than at the last dump.
    Growth,
    /// The kernel had to free memory for the memory group, or slowed it down.
    Pressure,
    /// The allocator had no memory.
    NoMemory,
}

impl DumpReason {
    const ALL: [Self; 5] = [Self::Limit, Self::Predicted, Self::Growth, Self::Pressure, Self::NoMemory];

    /// The word in a file's name and in the dump.
    pub fn name(self) -> &'static str {
        match self {
            Self::Limit => "limit",
            Self::Predicted => "predicted",
            Self::Growth => "growth",
            Self::Pressure => "pressure",
            Self::NoMemory => "no-memory",
        }
    }

    /// The reason with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }
}

/// The name of a dump that a black box keeps: `dmd.<UTC ms>.<bytes>.<pid>.<reason>.json.gz`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptDumpName {
    /// The time of the dump in milliseconds since 1970, or one more than in the folder's newest name if that is later.
    pub milliseconds: u64,
    /// The used bytes that counted towards the limit.
    pub bytes: u64,
    /// The number of the process.
    pub process: u32,
    /// The reason for the dump.
    pub reason: DumpReason,
    /// Whether the file is not complete.
    pub is_partial: bool,
}

impl KeptDumpName {
    /// The name of a file that is about to be written.
    pub fn new(milliseconds: u64, bytes: u64, process: u32, reason: DumpReason) -> Self {
        Self { milliseconds, bytes, process, reason, is_partial: true }
    }

    /// The same name with or without the mark of a partial file.
    #[must_use]
    pub fn with_partial(self, is_partial: bool) -> Self {
        Self { is_partial, ..self }
    }

    /// The newest name that is not of the process with this number whose first dump has the time `first`
    /// ([`u64::MAX`] without a dump). In a container, each process may have the number 1; then all earlier processes have
    /// earlier names.
    pub fn previous(names: impl Iterator<Item = Self>, process: u32, first: u64) -> Option<Self> {
        let is_own = |name: &Self| name.process == process && name.milliseconds >= first;
        names.filter(|name| !is_own(name)).max_by_key(|name| (name.milliseconds, name.process, name.bytes))
    }

    /// Reads a name. `None` if it is another file's.
    pub fn parse(name: &str) -> Option<Self> {
        let (whole, is_partial) = match name.strip_suffix(PARTIAL) {
            Some(whole) => (whole, true),
            None => (name, false),
        };
        let mut words = whole.strip_prefix(START)?.strip_suffix(END)?.split('.');
        let mut number = || words.next().filter(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
        let (milliseconds, bytes, process) = (number()?, number()?, number()?);
        let reason = DumpReason::named(words.next()?)?;
        let (milliseconds, bytes) = (milliseconds.parse().ok()?, bytes.parse().ok()?);
        let name = Self { milliseconds, bytes, process: process.parse().ok()?, reason, is_partial };
        words.next().is_none().then_some(name)
    }
}

impl fmt::Display for KeptDumpName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { milliseconds, bytes, process, reason, is_partial } = *self;
        let partial = if is_partial { PARTIAL } else { "" };
        write!(f, "{START}{milliseconds:013}.{bytes}.{process}.{}{END}{partial}", reason.name())
    }
}

/// The last sign of life of a process, in the header of its dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "the layout is fixed")]
pub struct LifeSign {
    /// The time in milliseconds since 1970; 0 before the first sign.
    pub milliseconds: u64,
    /// The most used bytes after the dump that counted towards the limit.
    pub most_used: u64,
}

impl LifeSign {
    /// The offset of the sign in a file: after the header of gzip, the length of its extra field, and the subfield's
    /// own head.
    pub const OFFSET: u64 = 16;
    /// The bytes of an encoded sign.
    pub const BYTES: usize = 16;
    const HEAD: [u8; 4] = [b'D', b'M', Self::BYTES as u8, 0];

    /// The bytes of the sign.
    pub fn encode(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.milliseconds.to_le_bytes());
        bytes[8..].copy_from_slice(&self.most_used.to_le_bytes());
        bytes
    }

    /// The extra field of the header of gzip, with a sign.
    pub fn extra_field(self) -> [u8; 4 + Self::BYTES] {
        let mut field = [0; 4 + Self::BYTES];
        field[..4].copy_from_slice(&Self::HEAD);
        field[4..].copy_from_slice(&self.encode());
        field
    }

    /// Finds the sign at the start of a file. `None` if the file is not a dump of a black box.
    pub fn find(file: &[u8]) -> Option<Self> {
        const EXTRA: u8 = 4;
        let is_ours = file.starts_with(&[0x1f, 0x8b, 8])
            && file.get(3)? & EXTRA != 0
            && file.get(10..16)? == [Self::HEAD.len() as u8 + Self::BYTES as u8, 0, b'D', b'M', 16, 0];
        let word = |at: usize| Some(u64::from_le_bytes(file.get(at..at + 8)?.try_into().ok()?));
        let sign = Self { milliseconds: word(16)?, most_used: word(24)? };
        is_ours.then_some(sign)
    }
}
