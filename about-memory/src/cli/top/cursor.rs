//! The row that keys act on, in a list that is only partly visible.

use std::ops::Range;

use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::List;

use super::super::line::styled;

#[derive(Debug, Default)]
pub(super) struct RowCursor {
    pub(super) at: usize,
    top: usize,
    height: usize,
}

impl RowCursor {
    /// Moves the cursor. Returns whether the key moves the cursor.
    pub(super) fn press(&mut self, key: KeyCode, total: usize) -> bool {
        let page = self.height.max(2) - 1;
        self.at = match key {
            KeyCode::Up => self.at.saturating_sub(1),
            KeyCode::Down => self.at + 1,
            KeyCode::PageUp => self.at.saturating_sub(page),
            KeyCode::PageDown => self.at + page,
            KeyCode::Home => 0,
            KeyCode::End => total,
            _ => return false,
        };
        self.at = self.at.min(total.saturating_sub(1));
        true
    }

    /// Returns the visible rows.
    pub(super) fn window(&mut self, height: u16, total: usize) -> Range<usize> {
        self.height = usize::from(height).max(1);
        self.at = self.at.min(total.saturating_sub(1));
        self.top = self.top.min(self.at).max((self.at + 1).saturating_sub(self.height));
        self.top..total.min(self.top + self.height)
    }

    /// Draws the visible rows. `window` returned their numbers.
    pub(super) fn draw(
        &self,
        frame: &mut Frame<'_>,
        area: Rect,
        lines: impl IntoIterator<Item = Line<'static>>,
    ) {
        let lines = lines.into_iter().enumerate().map(|(index, line)| {
            let is_active = self.top + index == self.at;
            if is_active { line.patch_style(Style::new().add_modifier(Modifier::REVERSED)) } else { line }
        });
        frame.render_widget(List::new(lines), area);
    }
}

/// Returns the line above a list.
pub(super) fn head(text: impl AsRef<str>) -> Line<'static> {
    styled(text.as_ref(), Style::new().add_modifier(Modifier::BOLD))
}

/// Formats a number with commas.
pub(super) fn count(number: i128) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = if number < 0 { "-".to_owned() } else { String::new() };
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a share in percent. The text is empty if the whole is 0.
pub(super) fn share(part: i128, whole: i128) -> String {
    if whole == 0 { String::new() } else { format!("{:.1}%", 100.0 * part as f64 / whole as f64) }
}
