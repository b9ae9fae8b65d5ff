//! Reads the value of one field of a span.

use core::fmt;

use tracing::field::{Field, Visit};

/// The longest part of a value that is in a path, in bytes.
const LONGEST: usize = 64;

/// The text of the field with this name.
pub(crate) struct FieldValue<'a> {
    name: &'a str,
    pub(crate) text: Option<String>,
}

impl<'a> FieldValue<'a> {
    pub(crate) fn new(name: &'a str) -> Self {
        Self { name, text: None }
    }

    fn set(&mut self, field: &Field, text: impl FnOnce() -> String) {
        if field.name() == self.name {
            let mut text = text();
            let end = (0..=LONGEST.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
            text.truncate(end.unwrap_or(0));
            self.text = Some(text).filter(|text| !text.is_empty());
        }
    }
}

impl Visit for FieldValue<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, || value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field, || format!("{value:?}"));
    }
}
