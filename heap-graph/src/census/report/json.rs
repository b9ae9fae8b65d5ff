//! Reports as JSON, with the keys in the order of the report.

use core::fmt::Write as _;
use std::io;

use super::{CensusCount, CensusFrame, CensusReport, StackKey};
use crate::graph::GraphText;

/// The size of a piece in bytes.
const PIECE: usize = 64 * 1024;

/// Collects JSON in pieces, and writes each full piece.
struct JsonPieces<'a> {
    piece: String,
    out: Option<&'a mut dyn io::Write>,
}

impl JsonPieces<'_> {
    /// Writes the current piece if it has at least `at_least` bytes.
    fn hand_on(&mut self, at_least: usize) -> io::Result<()> {
        if let Some(out) = &mut self.out
            && self.piece.len() >= at_least
        {
            out.write_all(self.piece.as_bytes())?;
            self.piece.clear();
        }
        Ok(())
    }

    fn list<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut item: impl FnMut(&mut Self, T) -> io::Result<()>,
    ) -> io::Result<()> {
        self.piece.push('[');
        for (at, value) in items.into_iter().enumerate() {
            if at > 0 {
                self.piece.push(',');
            }
            item(self, value)?;
            self.hand_on(PIECE)?;
        }
        self.piece.push(']');
        Ok(())
    }
}

impl CensusReport {
    /// The report as JSON in one line.
    ///
    /// A report by allocation stack is a `Map` in JavaScript. It becomes `{"@map": [[stack, report], ...]}`. A stack
    /// is an array of frames, the innermost first. A frame is `[source, line, column, function, null]`. An empty
    /// stack is `null`, and a stack that was not recorded is `"noStack"`.
    ///
    /// The text repeats all frames of each stack, so it may be long. [`write_json`](Self::write_json) does not keep
    /// it in memory.
    pub fn to_json(&self) -> String {
        let mut pieces = JsonPieces { piece: String::new(), out: None };
        self.to_pieces(&mut pieces).expect("no piece is written");
        pieces.piece
    }

    /// Writes the text of [`to_json`](Self::to_json) piece by piece.
    ///
    /// # Errors
    ///
    /// Returns an error if `out` cannot be written.
    pub fn write_json(&self, mut out: impl io::Write) -> io::Result<()> {
        let mut pieces = JsonPieces { piece: String::new(), out: Some(&mut out) };
        self.to_pieces(&mut pieces)?;
        pieces.hand_on(0)
    }

    fn to_pieces(&self, out: &mut JsonPieces<'_>) -> io::Result<()> {
        match self {
            Self::Count(count) => count.write_json(&mut out.piece),
            Self::Bucket(ids) => {
                return out.list(ids, |out, id| {
                    let _ = write!(out.piece, "{id}");
                    Ok(())
                });
            }
            Self::Map(entries) => {
                out.piece.push('{');
                for (at, (key, report)) in entries.iter().enumerate() {
                    if at > 0 {
                        out.piece.push(',');
                    }
                    key.write_json(&mut out.piece);
                    out.piece.push(':');
                    report.to_pieces(out)?;
                    out.hand_on(PIECE)?;
                }
                out.piece.push('}');
            }
            Self::Stacks(entries) => {
                out.piece.push_str("{\"@map\":");
                out.list(entries, |out, (key, report)| {
                    out.piece.push('[');
                    match key {
                        StackKey::Empty => out.piece.push_str("null"),
                        StackKey::NoStack => out.piece.push_str("\"noStack\""),
                        StackKey::Stack(stack) => out.list(stack.frames(), |out, at| {
                            at.frame.write_json(&mut out.piece);
                            Ok(())
                        })?,
                    }
                    out.piece.push(',');
                    report.to_pieces(out)?;
                    out.piece.push(']');
                    Ok(())
                })?;
                out.piece.push('}');
            }
            Self::All(each) => return out.list(each, |out, report| report.to_pieces(out)),
        }
        Ok(())
    }
}

impl CensusCount {
    fn write_json(&self, out: &mut String) {
        let mut before = '{';
        for (key, value) in [("count", self.count), ("bytes", self.bytes)] {
            if let Some(value) = value {
                let _ = write!(out, "{before}\"{key}\":{value}");
                before = ',';
            }
        }
        if let Some(label) = &self.label {
            let _ = write!(out, "{before}\"label\":");
            GraphText::from(label.as_str()).write_json(out);
            before = ',';
        }
        if before == '{' {
            out.push('{');
        }
        out.push('}');
    }
}

impl CensusFrame {
    pub(crate) fn write_json(&self, out: &mut String) {
        out.push('[');
        self.source.write_json(out);
        let _ = write!(out, ",{},{},", self.line, self.column);
        match &self.function {
            Some(function) => function.write_json(out),
            None => out.push_str("null"),
        }
        // The last element is the cause of an asynchronous call. Snapshots do not contain it.
        out.push_str(",null]");
    }
}
