//! The figures by name, and the types that have them.

use memory_reporter::scopes::{HeapFigures, MeasuredScope, Scope, ScopeError};

/// A figure of a scope, as assertions and baselines name it.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(clippy::exhaustive_enums, reason = "the macros name each figure")]
pub enum HeapFigure {
    Allocs,
    Reallocs,
    Frees,
    Bytes,
    Usable,
    Peak,
    RetainedBlocks,
    Retained,
    Net,
}

impl HeapFigure {
    pub(crate) const ALL: [Self; 9] = [
        Self::Allocs,
        Self::Reallocs,
        Self::Frees,
        Self::Bytes,
        Self::Usable,
        Self::Peak,
        Self::RetainedBlocks,
        Self::Retained,
        Self::Net,
    ];

    /// The name in assertions, baselines and messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Allocs => "allocs",
            Self::Reallocs => "reallocs",
            Self::Frees => "frees",
            Self::Bytes => "bytes",
            Self::Usable => "usable",
            Self::Peak => "peak",
            Self::RetainedBlocks => "retained_blocks",
            Self::Retained => "retained",
            Self::Net => "net",
        }
    }

    pub(crate) fn is_bytes(self) -> bool {
        !matches!(self, Self::Allocs | Self::Reallocs | Self::Frees | Self::RetainedBlocks)
    }

    /// Whether the blocks that are live now make the figure, not all allocations.
    pub(crate) fn is_of_live_blocks(self) -> bool {
        matches!(self, Self::RetainedBlocks | Self::Retained | Self::Net)
    }

    pub(crate) fn amount(self, figures: &HeapFigures) -> i128 {
        match self {
            Self::Allocs => figures.allocations.into(),
            Self::Reallocs => figures.reallocations.into(),
            Self::Frees => figures.frees.into(),
            Self::Bytes => figures.bytes.into(),
            Self::Usable => figures.usable_bytes.into(),
            Self::Peak => figures.peak_bytes.into(),
            Self::RetainedBlocks => figures.retained_blocks.into(),
            Self::Retained => figures.retained_bytes.into(),
            Self::Net => figures.net_bytes.into(),
        }
    }

    /// The amount with its unit.
    pub(crate) fn text(self, amount: i128) -> String {
        let digits = grouped(amount);
        match (self.is_bytes(), amount) {
            (false, _) => digits,
            (true, 1) => format!("{digits} byte"),
            (true, _) => format!("{digits} bytes"),
        }
    }
}

/// A number with commas between thousands.
pub(crate) fn grouped(amount: i128) -> String {
    let digits = amount.unsigned_abs().to_string();
    let mut text = String::new();
    if amount < 0 {
        text.push('-');
    }
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A scope whose figures can be compared: a [`Scope`] has the figures up to now, a [`MeasuredScope`] those at the end of
/// its call.
pub trait MeasuredHeap {
    /// The scope, for its name and stacks.
    fn scope(&self) -> &Scope;

    /// The figures to compare.
    ///
    /// # Errors
    ///
    /// Returns the error of [`Scope::figures`].
    fn heap_figures(&self) -> Result<HeapFigures, ScopeError>;
}

impl MeasuredHeap for Scope {
    fn scope(&self) -> &Scope {
        self
    }

    fn heap_figures(&self) -> Result<HeapFigures, ScopeError> {
        self.figures()
    }
}

impl MeasuredHeap for MeasuredScope {
    fn scope(&self) -> &Scope {
        Self::scope(self)
    }

    fn heap_figures(&self) -> Result<HeapFigures, ScopeError> {
        self.figures()
    }
}

impl<T: MeasuredHeap + ?Sized> MeasuredHeap for &T {
    fn scope(&self) -> &Scope {
        (**self).scope()
    }

    fn heap_figures(&self) -> Result<HeapFigures, ScopeError> {
        (**self).heap_figures()
    }
}
