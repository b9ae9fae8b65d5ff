//! Reports as JSON, key by key in their own order.

use core::fmt::Write as _;

use super::{Count, Frame, Report, StackKey};
use crate::text::Text;

impl Report {
    pub(crate) fn write_json(&self, out: &mut String) {
        match self {
            Self::Count(count) => count.write_json(out),
            Self::Bucket(ids) => list(out, ids, |out, id| {
                let _ = write!(out, "{id}");
            }),
            Self::Map(entries) => {
                out.push('{');
                for (at, (key, report)) in entries.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    key.write_json(out);
                    out.push(':');
                    report.write_json(out);
                }
                out.push('}');
            }
            Self::Stacks(entries) => {
                out.push_str("{\"@map\":");
                list(out, entries, |out, (key, report)| {
                    out.push('[');
                    match key {
                        StackKey::NoStack => out.push_str("\"noStack\""),
                        StackKey::Stack(stack) => {
                            list(out, stack.frames(), |out, at| at.frame.write_json(out));
                        }
                    }
                    out.push(',');
                    report.write_json(out);
                    out.push(']');
                });
                out.push('}');
            }
            Self::All(each) => list(out, each, |out, report| report.write_json(out)),
        }
    }
}

impl Count {
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
            Text::from(label.as_str()).write_json(out);
            before = ',';
        }
        if before == '{' {
            out.push('{');
        }
        out.push('}');
    }
}

impl Frame {
    pub(crate) fn write_json(&self, out: &mut String) {
        out.push('[');
        self.source.write_json(out);
        let _ = write!(out, ",{},{},", self.line, self.column);
        match &self.function {
            Some(function) => function.write_json(out),
            None => out.push_str("null"),
        }
        // The cause of an asynchronous call is in no snapshot.
        out.push_str(",null]");
    }
}

/// A JSON array.
pub(crate) fn list<T>(
    out: &mut String,
    items: impl IntoIterator<Item = T>,
    mut item: impl FnMut(&mut String, T),
) {
    out.push('[');
    for (at, value) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        item(out, value);
    }
    out.push(']');
}
