//! The layer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use memory_reporter::path_segment;
use memory_reporter::tags::{CountedTag, KeyedTags, Tag};
use tracing::span::{Attributes, Id};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::field_value::FieldValue;

/// The path for spans whose value has no path of its own.
const OTHER: &str = "(other)";

/// The number of paths, unless [`SpanTags::at_most`] sets another.
const PATHS: usize = 1000;

/// A layer that gives chosen spans tags: see [the crate](crate).
#[derive(Debug)]
pub struct SpanTags {
    path: String,
    rules: Vec<SpanRule>,
    most: usize,
    keys: KeyedTags,
    /// The tag of each path below `path`.
    tags: RwLock<HashMap<String, Tag>>,
    /// The spans whose value has no path of its own.
    beyond: AtomicU64,
}

/// Which spans have a tag.
#[derive(Debug)]
struct SpanRule {
    /// The name of the spans; `None` for all names.
    name: Option<String>,
    /// The target of the spans, with all targets below it; `None` for all targets.
    target: Option<String>,
    /// The field whose value ends the path.
    field: Option<String>,
}

impl SpanRule {
    fn applies(&self, metadata: &Metadata<'_>) -> bool {
        let is_below = |target: &String| {
            let rest = metadata.target().strip_prefix(target.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
        };
        self.name.as_ref().is_none_or(|name| name == metadata.name())
            && self.target.as_ref().is_none_or(is_below)
    }
}

impl SpanTags {
    /// A layer whose paths are below `path`, which must be below `explicit/`. Without a rule, no span has a tag.
    pub fn new(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            rules: Vec::new(),
            most: PATHS,
            keys: KeyedTags::new(),
            tags: RwLock::default(),
            beyond: AtomicU64::new(0),
        }
    }

    /// Spans with this name get the tag `path/name`. The first rule that applies to a span counts.
    #[must_use]
    pub fn span(mut self, name: impl Into<String>) -> Self {
        self.rules.push(SpanRule { name: Some(name.into()), target: None, field: None });
        self
    }

    /// Spans with this name get the tag `path/name/value`, with the value of this field when the span is made. Spans
    /// without a value get `path/name`.
    ///
    /// The value is part of a path, and paths appear even in anonymized reports. So the field must not contain private
    /// data, such as the name or the mail address of a user.
    #[must_use]
    pub fn span_with_value(mut self, name: impl Into<String>, field: impl Into<String>) -> Self {
        self.rules.push(SpanRule { name: Some(name.into()), target: None, field: Some(field.into()) });
        self
    }

    /// Spans of this target, such as `my_app::db`, and of all modules below it get the tag `path/name`.
    #[must_use]
    pub fn target(mut self, target: impl Into<String>) -> Self {
        self.rules.push(SpanRule { name: None, target: Some(target.into()), field: None });
        self
    }

    /// The largest number of paths; further values share the path `path/name/(other)`. By default 1,000.
    #[must_use]
    pub fn at_most(mut self, paths: usize) -> Self {
        self.most = paths;
        self
    }

    /// The number of spans that got the tag `(other)`.
    pub fn spans_beyond(&self) -> u64 {
        self.beyond.load(Ordering::Relaxed)
    }

    fn tag(&self, attributes: &Attributes<'_>) -> Option<Tag> {
        let metadata = attributes.metadata();
        let rule = self.rules.iter().find(|rule| rule.applies(metadata))?;
        let name = path_segment(metadata.name());
        let value = rule.field.as_ref().and_then(|field| {
            let mut value = FieldValue::new(field);
            attributes.record(&mut value);
            value.text
        });
        let below = match value {
            Some(value) => format!("{name}/{}", path_segment(&value)),
            None => name.clone(),
        };
        if let Some(tag) = self.tags.read().unwrap_or_else(PoisonError::into_inner).get(&below) {
            return Some(*tag);
        }
        let mut tags = self.tags.write().unwrap_or_else(PoisonError::into_inner);
        let below = if tags.len() < self.most || tags.contains_key(&below) {
            below
        } else {
            self.beyond.fetch_add(1, Ordering::Relaxed);
            format!("{name}/{OTHER}")
        };
        let path = format!("{}/{below}", self.path);
        let tag = *tags.entry(below).or_insert_with(|| {
            // Without an allocator or without room, the tag does not count, and collections warn.
            CountedTag::new(&path).map_or_else(|_| Tag::new(&path), |counted| counted.tag())
        });
        Some(tag)
    }
}

/// The tag of a span.
struct SpanTag(Tag);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for SpanTags {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        // The memory of the layer belongs to no span.
        Tag::NONE.run(|| {
            if let (Some(tag), Some(span)) = (self.tag(attributes), context.span(id)) {
                span.extensions_mut().insert(SpanTag(tag));
            }
        });
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(SpanTag(tag)) = span.extensions().get() {
            self.keys.enter(*tag, id.into_u64());
        }
    }

    fn on_exit(&self, id: &Id, _: Context<'_, S>) {
        self.keys.exit(id.into_u64());
    }
}
