//! Breakdowns: the rules by which a census groups nodes. The JSON and its rules are the same as in Firefox, and
//! messages for errors that Firefox also reports start with Firefox's words. Firefox ignores unknown keys, so it hides
//! a typing error such as `than`; here, unknown keys are errors.

use core::fmt;

use serde_json::{Map, Value};

/// The rule by which a census groups nodes. [`Breakdown::parse`] reads it from JSON.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Breakdown {
    /// Counts nodes and their bytes.
    Count {
        /// Whether the report contains the number of nodes.
        count: bool,
        /// Whether the report contains the bytes of the nodes.
        bytes: bool,
        /// A label for the report.
        label: Option<String>,
    },
    /// Lists the nodes' ids, in the order of the walk.
    Bucket,
    /// Groups nodes by the name of the type.
    InternalType {
        /// The breakdown for the nodes of each type.
        then: Box<Breakdown>,
    },
    /// Groups nodes by the descriptive name. Every node must have one.
    DescriptiveType {
        /// The breakdown for the nodes of each name.
        then: Box<Breakdown>,
    },
    /// Groups nodes by class.
    ObjectClass {
        /// The breakdown for the nodes of each class.
        then: Box<Breakdown>,
        /// The breakdown for nodes without a class.
        other: Box<Breakdown>,
    },
    /// Groups nodes by coarse type.
    CoarseType {
        /// The breakdown for objects.
        objects: Box<Breakdown>,
        /// The breakdown for scripts.
        scripts: Box<Breakdown>,
        /// The breakdown for strings.
        strings: Box<Breakdown>,
        /// The breakdown for all other nodes.
        other: Box<Breakdown>,
        /// The breakdown for DOM nodes.
        dom_node: Box<Breakdown>,
    },
    /// Groups scripts by their file.
    Filename {
        /// The breakdown for the scripts of each file.
        then: Box<Breakdown>,
        /// The breakdown for nodes without a file.
        no_filename: Box<Breakdown>,
    },
    /// Groups nodes by allocation stack.
    AllocationStack {
        /// The breakdown for the nodes of each stack.
        then: Box<Breakdown>,
        /// The breakdown for nodes without a stack.
        no_stack: Box<Breakdown>,
    },
    /// Applies each of these breakdowns to all nodes: the array form of Firefox's documentation. Firefox itself
    /// rejects it.
    All(Vec<Breakdown>),
}

/// The reason why a breakdown was rejected. If Firefox also rejects the breakdown, the message starts with Firefox's
/// message, without the name of the error. The messages of `Null`, `NoBy` and `UnknownBy` then list the accepted
/// values.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BreakdownError {
    /// The text is not JSON.
    NotJson(String),
    /// A breakdown is `null`.
    Null,
    /// A breakdown has no `by`, is an empty array, or is neither an object nor an array.
    NoBy,
    /// A breakdown has a key that its `by` does not allow: the key and the `by`.
    UnknownKey(String, String),
    /// The value of `by` is unknown.
    UnknownBy(String),
    /// A breakdown contains another breakdown with the same `by`.
    Nested(String),
    /// Breakdowns are nested deeper than 32 levels. Only arrays make this possible: Firefox's breakdowns nest at most
    /// eight levels deep.
    TooDeep,
}

impl fmt::Display for BreakdownError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotJson(error) => write!(f, "a breakdown must be JSON: {error}"),
            Self::Null => write!(f, "can't convert null to object; {}", accepted()),
            Self::NoBy => {
                write!(f, "unrecognized 'by' value in takeCensus breakdown: \"undefined\"; {}", accepted())
            }
            Self::UnknownBy(by) => {
                write!(f, "unrecognized 'by' value in takeCensus breakdown: \"{by}\"; {}", accepted())
            }
            Self::UnknownKey(key, by) => {
                write!(
                    f,
                    "unrecognized key \"{key}\" in a takeCensus breakdown by \"{by}\"; the allowed keys are by"
                )?;
                keys(by).iter().try_for_each(|key| write!(f, ", {key}"))
            }
            Self::Nested(by) => {
                write!(f, "takeCensus breakdown 'by' value nested within itself: \"{by}\"")
            }
            Self::TooDeep => f.write_str("takeCensus breakdown nested too deep; the limit is 32 levels"),
        }
    }
}

impl std::error::Error for BreakdownError {}

/// The values of `by`, each with the keys that a breakdown with this `by` may have.
const KINDS: [(&str, &[&str]); 8] = [
    ("count", &["count", "bytes", "label"]),
    ("bucket", &[]),
    ("internalType", &["then"]),
    ("descriptiveType", &["then"]),
    ("objectClass", &["then", "other"]),
    ("coarseType", &["objects", "scripts", "strings", "other", "domNode"]),
    ("filename", &["then", "noFilename"]),
    ("allocationStack", &["then", "noStack"]),
];

fn keys(by: &str) -> &'static [&'static str] {
    KINDS.iter().find(|(known, _)| *known == by).map_or(&[], |(_, keys)| keys)
}

/// The accepted values of a breakdown, as text.
fn accepted() -> String {
    let names: Vec<&str> = KINDS.iter().map(|(by, _)| *by).collect();
    format!("a breakdown is an object with 'by' ({}), or an array of breakdowns", names.join(", "))
}

/// The largest depth of nested breakdowns, including arrays.
const MAX_DEPTH: usize = 32;

impl Default for Breakdown {
    /// Firefox's default: by coarse type; then objects by class, DOM nodes by descriptive name, and other nodes by
    /// type.
    fn default() -> Self {
        Self::CoarseType {
            objects: Box::new(Self::ObjectClass { then: Self::count(), other: Self::count() }),
            scripts: Self::count(),
            strings: Self::count(),
            other: Box::new(Self::InternalType { then: Self::count() }),
            dom_node: Box::new(Self::DescriptiveType { then: Self::count() }),
        }
    }
}

impl Breakdown {
    fn count() -> Box<Self> {
        Box::new(Self::Count { count: true, bytes: true, label: None })
    }

    /// The breakdown with this name, one of [`PRESETS`](Self::PRESETS); `None` for another name.
    ///
    /// The presets are Firefox's default, the breakdowns of Firefox's Memory tool, and a breakdown for each `by` except
    /// `descriptiveType`: a breakdown by `descriptiveType` fails on nodes without a descriptive name.
    pub fn preset(name: &str) -> Option<Self> {
        let (_, json) = Self::PRESETS.iter().find(|(known, _)| *known == name)?;
        Some(Self::parse(json).expect("a test parses every preset"))
    }

    /// The names and breakdowns of presets. `default` is Firefox's default. `type` and `stack` are the Memory tool's
    /// breakdowns by type and by allocation stack. The Memory tool names single nodes with the breakdown `label`.
    pub const PRESETS: [(&str, &str); 11] = [
        (
            "default",
            r#"{"by":"coarseType","objects":{"by":"objectClass"},"other":{"by":"internalType"},"domNode":{"by":"descriptiveType"}}"#,
        ),
        ("type", TYPE),
        (
            "stack",
            r#"{"by":"allocationStack","then":{"by":"count","count":true,"bytes":true},"noStack":{"by":"count","count":true,"bytes":true}}"#,
        ),
        ("label", LABEL),
        ("count", r#"{"by":"count"}"#),
        ("bucket", r#"{"by":"bucket"}"#),
        ("allocationStack", r#"{"by":"allocationStack"}"#),
        ("internalType", r#"{"by":"internalType"}"#),
        ("objectClass", r#"{"by":"objectClass"}"#),
        ("coarseType", r#"{"by":"coarseType"}"#),
        ("filename", r#"{"by":"filename"}"#),
    ];

    /// Reads a breakdown from JSON. The JSON is the breakdown itself, or the options of Firefox's `takeCensus`: an
    /// object with the key `breakdown` only.
    ///
    /// # Errors
    ///
    /// Returns a [`BreakdownError`] for everything that Firefox rejects, except arrays that are not empty. Unknown keys
    /// and breakdowns nested deeper than 32 levels are also errors.
    pub fn parse(json: &str) -> Result<Self, BreakdownError> {
        let value: Value = serde_json::from_str(json).map_err(|e| BreakdownError::NotJson(e.to_string()))?;
        Self::from_json(&value)
    }

    /// Reads a breakdown from a JSON value.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`parse`](Self::parse).
    pub fn from_json(value: &Value) -> Result<Self, BreakdownError> {
        let of_options = value.as_object().filter(|object| object.len() == 1);
        let value = of_options.and_then(|object| object.get("breakdown")).unwrap_or(value);
        from_json(value, &mut Vec::new(), 0)
    }

    /// The same breakdown with a bucket in place of every count, to find the nodes behind a count.
    pub fn with_buckets(&self) -> Self {
        let deep = |inner: &Self| Box::new(inner.with_buckets());
        match self {
            Self::Count { .. } | Self::Bucket => Self::Bucket,
            Self::InternalType { then } => Self::InternalType { then: deep(then) },
            Self::DescriptiveType { then } => Self::DescriptiveType { then: deep(then) },
            Self::ObjectClass { then, other } => Self::ObjectClass { then: deep(then), other: deep(other) },
            Self::CoarseType { objects, scripts, strings, other, dom_node } => Self::CoarseType {
                objects: deep(objects),
                scripts: deep(scripts),
                strings: deep(strings),
                other: deep(other),
                dom_node: deep(dom_node),
            },
            Self::Filename { then, no_filename } => {
                Self::Filename { then: deep(then), no_filename: deep(no_filename) }
            }
            Self::AllocationStack { then, no_stack } => {
                Self::AllocationStack { then: deep(then), no_stack: deep(no_stack) }
            }
            Self::All(each) => Self::All(each.iter().map(Self::with_buckets).collect()),
        }
    }
}

const TYPE: &str = r#"{"by":"coarseType","objects":{"by":"objectClass","then":{"by":"count","count":true,"bytes":true},"other":{"by":"count","count":true,"bytes":true}},"strings":{"by":"count","count":true,"bytes":true},"scripts":{"by":"filename","then":{"by":"internalType","then":{"by":"count","count":true,"bytes":true}},"noFilename":{"by":"internalType","then":{"by":"count","count":true,"bytes":true}}},"other":{"by":"internalType","then":{"by":"count","count":true,"bytes":true}},"domNode":{"by":"descriptiveType","then":{"by":"count","count":true,"bytes":true}}}"#;

const LABEL: &str = r#"{"by":"coarseType","objects":{"by":"objectClass","then":{"by":"count","count":true,"bytes":true},"other":{"by":"count","count":true,"bytes":true}},"strings":{"by":"internalType","then":{"by":"count","count":true,"bytes":true}},"scripts":{"by":"internalType","then":{"by":"filename","then":{"by":"count","count":true,"bytes":true},"noFilename":{"by":"count","count":true,"bytes":true}}},"other":{"by":"internalType","then":{"by":"count","count":true,"bytes":true}},"domNode":{"by":"descriptiveType","then":{"by":"count","count":true,"bytes":true}}}"#;

fn from_json(value: &Value, seen: &mut Vec<String>, depth: usize) -> Result<Breakdown, BreakdownError> {
    if depth > MAX_DEPTH {
        return Err(BreakdownError::TooDeep);
    }
    let object = match value {
        Value::Null => return Err(BreakdownError::Null),
        Value::Object(object) => object,
        Value::Array(each) if !each.is_empty() => {
            let each = each.iter().map(|value| from_json(value, seen, depth + 1));
            return Ok(Breakdown::All(each.collect::<Result<_, _>>()?));
        }
        _ => return Err(BreakdownError::NoBy),
    };
    let by = object.get("by").map(text).ok_or(BreakdownError::NoBy)?;
    if seen.contains(&by) {
        return Err(BreakdownError::Nested(by));
    }
    if KINDS.iter().all(|(known, _)| *known != by) {
        return Err(BreakdownError::UnknownBy(by));
    }
    let is_known = |key: &&String| *key == "by" || keys(&by).contains(&key.as_str());
    if let Some(key) = object.keys().find(|key| !is_known(key)) {
        return Err(BreakdownError::UnknownKey(key.clone(), by));
    }
    seen.push(by);
    let by = seen.last().cloned().unwrap_or_default();
    let mut then = |key: &str| match object.get(key) {
        None => Ok(Breakdown::count()),
        Some(value) => from_json(value, seen, depth + 1).map(Box::new),
    };
    let breakdown = match by.as_str() {
        "count" => Breakdown::Count {
            count: is_on(object, "count"),
            bytes: is_on(object, "bytes"),
            label: object.get("label").map(text),
        },
        "bucket" => Breakdown::Bucket,
        "internalType" => Breakdown::InternalType { then: then("then")? },
        "descriptiveType" => Breakdown::DescriptiveType { then: then("then")? },
        "objectClass" => Breakdown::ObjectClass { then: then("then")?, other: then("other")? },
        "coarseType" => Breakdown::CoarseType {
            objects: then("objects")?,
            scripts: then("scripts")?,
            strings: then("strings")?,
            other: then("other")?,
            dom_node: then("domNode")?,
        },
        "filename" => Breakdown::Filename { then: then("then")?, no_filename: then("noFilename")? },
        "allocationStack" => Breakdown::AllocationStack { then: then("then")?, no_stack: then("noStack")? },
        _ => return Err(BreakdownError::UnknownBy(by)),
    };
    seen.pop();
    Ok(breakdown)
}

/// Whether a property is on: the object lacks the property, or JavaScript treats the property's value as true.
fn is_on(object: &Map<String, Value>, key: &str) -> bool {
    match object.get(key) {
        None => true,
        Some(Value::Null) => false,
        Some(Value::Bool(yes)) => *yes,
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(_) | Value::Object(_)) => true,
    }
}

/// A value as text, like JavaScript's `String`.
fn text(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(yes) => yes.to_string(),
        Value::Number(number) => match number.as_f64() {
            // Adding 0 turns -0 into 0, like JavaScript.
            Some(number) if number.fract() == 0.0 && number.abs() < 1e21 => format!("{}", number + 0.0),
            _ => number.to_string(),
        },
        Value::String(text) => text.clone(),
        Value::Array(each) => {
            let each = each.iter().map(|value| if value.is_null() { String::new() } else { text(value) });
            each.collect::<Vec<_>>().join(",")
        }
        Value::Object(_) => "[object Object]".to_owned(),
    }
}
