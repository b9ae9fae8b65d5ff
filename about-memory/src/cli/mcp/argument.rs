//! The arguments of a tool: their schema, and checked values.

use serde_json::{Map, Value, json};

use super::page::quoted;

/// The kind of an argument's value, with its limits.
#[derive(Clone, Copy)]
pub(super) enum ArgumentKind {
    /// A text of at most this many bytes.
    Text(usize),
    /// A whole number within these bounds.
    Number(u64, u64),
    Flag,
    Choice(&'static [&'static str]),
}

/// An argument that a tool accepts.
pub(super) struct ToolArgument {
    pub(super) name: &'static str,
    pub(super) kind: ArgumentKind,
    pub(super) is_required: bool,
    pub(super) about: &'static str,
}

impl ToolArgument {
    pub(super) const fn new(name: &'static str, kind: ArgumentKind, about: &'static str) -> Self {
        Self { name, kind, is_required: false, about }
    }

    pub(super) const fn required(self) -> Self {
        Self { is_required: true, ..self }
    }

    fn schema(&self) -> Value {
        match self.kind {
            ArgumentKind::Text(most) => {
                json!({ "type": "string", "maxLength": most, "description": self.about })
            }
            ArgumentKind::Number(least, most) => {
                json!({ "type": "integer", "minimum": least, "maximum": most, "description": self.about })
            }
            ArgumentKind::Flag => json!({ "type": "boolean", "description": self.about }),
            ArgumentKind::Choice(choices) => {
                json!({ "type": "string", "enum": choices, "description": self.about })
            }
        }
    }

    /// Checks a value. The error tells the assistant what the argument must be.
    fn check(&self, value: &Value) -> Result<(), String> {
        let (is_right, rule) = match self.kind {
            ArgumentKind::Text(most) => (
                value.as_str().is_some_and(|text| text.len() <= most),
                format!("a text of at most {most} bytes"),
            ),
            ArgumentKind::Number(least, most) => (
                value.as_u64().is_some_and(|number| (least..=most).contains(&number)),
                format!("a whole number from {least} to {most}"),
            ),
            ArgumentKind::Flag => (value.is_boolean(), "true or false".to_owned()),
            ArgumentKind::Choice(choices) => (
                value.as_str().is_some_and(|text| choices.contains(&text)),
                format!("one of: {}", choices.join(", ")),
            ),
        };
        if is_right {
            return Ok(());
        }
        Err(format!("`{}` must be {rule}; it is {}", self.name, quoted(&value.to_string(), 80)))
    }
}

/// Returns the schema of all arguments of a tool.
pub(super) fn schema(arguments: &[ToolArgument]) -> Value {
    let properties: Map<String, Value> =
        arguments.iter().map(|argument| (argument.name.to_owned(), argument.schema())).collect();
    let required: Vec<&str> =
        arguments.iter().filter(|argument| argument.is_required).map(|argument| argument.name).collect();
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// The arguments of a call, after all checks.
pub(super) struct CheckedArguments<'a>(&'a Map<String, Value>);

impl<'a> CheckedArguments<'a> {
    pub(super) fn new(values: &'a Map<String, Value>, known: &[ToolArgument]) -> Result<Self, String> {
        for (name, value) in values {
            let Some(argument) = known.iter().find(|argument| argument.name == name) else {
                let names: Vec<&str> = known.iter().map(|argument| argument.name).collect();
                return Err(format!(
                    "there is no argument {}; the arguments are: {}",
                    quoted(name, 80),
                    names.join(", ")
                ));
            };
            if !value.is_null() || argument.is_required {
                argument.check(value)?;
            }
        }
        match known.iter().find(|argument| argument.is_required && !values.contains_key(argument.name)) {
            Some(missing) => Err(format!("`{}` is missing: {}", missing.name, missing.about)),
            None => Ok(Self(values)),
        }
    }

    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        self.0.get(name)?.as_str()
    }

    /// The value of a required text.
    pub(super) fn required(&self, name: &str) -> &'a str {
        self.text(name).expect("the arguments were checked")
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name)?.as_u64()
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(false)
    }
}
