//! A single [`Report`], field by field as in Firefox's `nsIMemoryReporter.idl`.
//!
//! The numbers of [`Kind`] and [`Units`] are part of the file format and never change.

use core::fmt;
use core::str::FromStr;

/// The origin of the memory of a report. It matters only under `explicit/`.
///
/// Source: the `KIND_*` constants of Firefox's `nsIMemoryReporter.idl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Memory that the program requests from the operating system directly (`mmap` and the like). Units must be
    /// bytes.
    NonHeap = 0,
    /// Blocks of the heap allocator. `heap-allocated` counts these blocks. Units must be bytes.
    Heap = 1,
    /// Anything else, in any units; not allowed under `explicit/`.
    Other = 2,
}

impl Kind {
    /// The kind with this number in the file format.
    pub const fn from_number(number: i64) -> Option<Self> {
        match number {
            0 => Some(Self::NonHeap),
            1 => Some(Self::Heap),
            2 => Some(Self::Other),
            _ => None,
        }
    }
}

/// Firefox's name, such as `HEAP`.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NonHeap => "NONHEAP",
            Self::Heap => "HEAP",
            Self::Other => "OTHER",
        })
    }
}

/// Parses the output of `Display`.
impl FromStr for Kind {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let all = [Self::NonHeap, Self::Heap, Self::Other];
        named(name, &all).ok_or_else(|| UnknownName::new(name, "NONHEAP, HEAP or OTHER"))
    }
}

/// The unit of a report's amount.
///
/// Source: the `UNITS_*` constants of Firefox's `nsIMemoryReporter.idl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Units {
    /// Bytes.
    Bytes = 0,
    /// A count of things that exist now.
    Count = 1,
    /// A count of things that happened since the process started; it never decreases.
    CountCumulative = 2,
    /// A fraction in hundredths of a per cent: 1234 is 12.34 %. It may exceed 100 %.
    Percentage = 3,
}

impl Units {
    /// The units with this number in the file format.
    pub const fn from_number(number: i64) -> Option<Self> {
        match number {
            0 => Some(Self::Bytes),
            1 => Some(Self::Count),
            2 => Some(Self::CountCumulative),
            3 => Some(Self::Percentage),
            _ => None,
        }
    }
}

/// Firefox's name, such as `COUNT_CUMULATIVE`.
impl fmt::Display for Units {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bytes => "BYTES",
            Self::Count => "COUNT",
            Self::CountCumulative => "COUNT_CUMULATIVE",
            Self::Percentage => "PERCENTAGE",
        })
    }
}

/// Parses the output of `Display`.
impl FromStr for Units {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let all = [Self::Bytes, Self::Count, Self::CountCumulative, Self::Percentage];
        let expected = "BYTES, COUNT, COUNT_CUMULATIVE or PERCENTAGE";
        named(name, &all).ok_or_else(|| UnknownName::new(name, expected))
    }
}

fn named<T: Copy + fmt::Display>(name: &str, all: &[T]) -> Option<T> {
    all.iter().find(|value| value.to_string() == name).copied()
}

/// An error: the text is not the name of a [`Kind`] or of [`Units`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    name: String,
    expected: &'static str,
}

impl UnknownName {
    fn new(name: &str, expected: &'static str) -> Self {
        Self { name: name.to_owned(), expected }
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}, found `{}`", self.expected, self.name)
    }
}

impl core::error::Error for UnknownName {}

/// One measurement. [`ReportSet::iter`](crate::ReportSet::iter) returns reports, and
/// [`ReportSet::push`](crate::ReportSet::push) takes one.
///
/// The fields are the fields of Firefox's file format, which do not change, so a program may construct this struct
/// directly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report<'a> {
    /// The process, for example `Main Process (pid 100)`; empty means the process that runs this code.
    pub process: &'a str,
    /// Names separated by `/`; a `/` inside a name is written `\`. A path without `/` is not part of a tree.
    pub path: &'a str,
    /// The origin of the memory.
    pub kind: Kind,
    /// The unit of `amount`.
    pub units: Units,
    /// The amount, in `units`.
    pub amount: i64,
    /// The description of the measured memory, in full sentences.
    pub description: &'a str,
}

/// Converts any integer into an amount. A value outside the range of `i64` becomes the nearest `i64`.
#[doc(hidden)]
pub fn amount<N: TryInto<i64> + Copy + PartialOrd + Default>(amount: N) -> i64 {
    amount.try_into().unwrap_or(if amount < N::default() { i64::MIN } else { i64::MAX })
}
