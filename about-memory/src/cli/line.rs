//! Lines on the screen of a terminal.
//!
//! All text of `top` passes through these functions. They escape characters that could deceive a reader: a terminal
//! does not show such characters, so two different names would look equal. A test rejects lines that are made
//! elsewhere.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// A line of text.
pub(super) fn line(text: &str) -> Line<'static> {
    Line::from(about_memory::escape(text))
}

/// A line of text in a style.
pub(super) fn styled(text: &str, style: Style) -> Line<'static> {
    Line::styled(about_memory::escape(text), style)
}

/// A part of a line in a style.
pub(super) fn part(text: &str, style: Style) -> Span<'static> {
    Span::styled(about_memory::escape(text), style)
}
