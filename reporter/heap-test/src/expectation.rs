//! Compares figures with the expectations of an assertion.

use crate::failure::{FailedFigure, HeapFailure};
use crate::figure::{HeapFigure, MeasuredHeap, grouped};

/// How a figure is compared with its limit.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "the macros name each comparison")]
pub enum Comparison {
    Equal,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl Comparison {
    fn holds(self, amount: i128, limit: i128) -> bool {
        match self {
            Self::Equal => amount == limit,
            Self::Less => amount < limit,
            Self::AtMost => amount <= limit,
            Self::Greater => amount > limit,
            Self::AtLeast => amount >= limit,
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Greater => ">",
            Self::AtLeast => ">=",
        }
    }
}

/// One comparison of `assert_heap!`.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_structs, reason = "the macros make it")]
pub struct HeapExpectation {
    pub figure: HeapFigure,
    pub comparison: Comparison,
    pub limit: i128,
}

/// An integer in an expectation.
#[doc(hidden)]
pub trait ToAmount {
    fn to_amount(self) -> i128;
}

macro_rules! to_amount {
    ($($integer:ty)*) => {
        $(impl ToAmount for $integer {
            fn to_amount(self) -> i128 {
                // No integer of a program's memory has more than 127 bits.
                i128::try_from(self).unwrap_or(i128::MAX)
            }
        })*
    };
}

to_amount!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);

/// Implements `assert_heap!`.
#[doc(hidden)]
#[track_caller]
pub fn check(heap: &dyn MeasuredHeap, expectations: &[HeapExpectation]) {
    let figures = match heap.heap_figures() {
        Ok(figures) => figures,
        Err(error) => panic!("the heap of `{}` is not known: {error}", heap.scope().name()),
    };
    let failed: Vec<FailedFigure> = expectations
        .iter()
        .map(|expected| (expected, expected.figure.amount(&figures)))
        .filter(|(expected, amount)| !expected.comparison.holds(*amount, expected.limit))
        .map(|(expected, amount)| FailedFigure {
            figure: expected.figure,
            expected: format!("{} {}", expected.comparison.sign(), expected.figure.text(expected.limit)),
            amount,
            difference: match amount - expected.limit {
                0 => String::new(),
                over if over > 0 => format!(" (+{})", grouped(over)),
                under => format!(" ({})", grouped(under)),
            },
        })
        .collect();
    if !failed.is_empty() {
        HeapFailure { scope: heap.scope(), figures: &figures, failed }.panic();
    }
}
