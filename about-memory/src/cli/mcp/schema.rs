//! The schemas of the answers' structured content.

use serde_json::{Map, Value, json};

use super::page;

fn field(name: &str, schema: Value) -> (String, Value) {
    (name.to_owned(), schema)
}

fn text_list() -> Value {
    json!({ "type": "array", "items": { "type": "string" } })
}

fn total_schema() -> Value {
    object_schema(Map::from_iter([
        field("bytes", json!({ "type": "integer" })),
        field("count", json!({ "type": "integer" })),
    ]))
}

fn source_fields() -> Map<String, Value> {
    let mut fields = answer_fields();
    fields.extend([
        field("name", json!({ "type": "string" })),
        field("kind", json!({ "type": "string" })),
        field("total", total_schema()),
        field("bytesAre", json!({ "type": "string" })),
        field("countsAre", json!({ "type": "string" })),
    ]);
    fields
}

pub(super) fn open_schema() -> Value {
    let mut fields = source_fields();
    fields.extend([field("groups", text_list())]);
    object_schema(fields)
}

pub(super) fn summary_schema() -> Value {
    let mut fields = source_fields();
    fields.extend([field("tables", json!({ "type": "array", "items": object_schema(part_fields()) }))]);
    with_sums(object_schema(fields))
}

pub(super) fn why_schema() -> Value {
    let step = object_schema(Map::from_iter([
        field("id", json!({ "type": "string" })),
        field("name", json!({ "type": "string" })),
        field("edge", json!({ "type": "string" })),
    ]));
    let path = json!({
        "type": "object",
        "properties": {
            "id": { "type": "string" },
            "calls": text_list(),
            "steps": { "type": "array", "items": step },
            "leftOut": { "type": "integer" },
        },
        "required": ["leftOut"],
        "additionalProperties": false,
    });
    let mut fields = answer_fields();
    let counts = json!({ "type": "object", "additionalProperties": { "type": "integer" } });
    fields.append(&mut part_fields());
    fields.extend([
        field("paths", json!({ "type": "array", "items": path })),
        field("node", json!({ "type": "string" })),
        field("found", json!({ "type": "integer" })),
        field("whole", total_schema()),
        field("total", counts.clone()),
        field("shown", counts.clone()),
        field("rest", counts),
    ]);
    json!({
        "type": "object",
        "properties": fields,
        "required": ["schema", "handle", "notes", "total", "shown", "rest", "cursor", "paths"],
        "additionalProperties": false,
    })
}

pub(super) fn source_schema() -> Value {
    let counts = || json!({ "type": "object", "additionalProperties": { "type": "integer" } });
    let call = object_schema(Map::from_iter([
        field("function", json!({ "type": "string" })),
        field("file", json!({ "type": "string" })),
        field("line", json!({ "type": ["integer", "null"] })),
        field("lines", text_list()),
    ]));
    let mut fields = answer_fields();
    fields.extend([
        field("total", counts()),
        field("shown", counts()),
        field("rest", counts()),
        field("cursor", json!({ "type": "null" })),
        field("calls", json!({ "type": "array", "items": call })),
    ]);
    object_schema(fields)
}

pub(super) fn close_schema() -> Value {
    let mut fields = answer_fields();
    fields.extend([field("open", json!({ "type": "integer" }))]);
    object_schema(fields)
}
/// Adds the schema of sums, which the fields of [`part_fields`] refer to.
pub(super) fn with_sums(mut schema: Value) -> Value {
    schema["$defs"] = json!({ "sums": {
        "type": "object",
        "properties": {
            "rows": { "type": "integer" },
            "bytes": { "type": "integer" },
            "count": { "type": "integer" },
        },
        "required": ["rows", "bytes", "count"],
        "additionalProperties": false,
    } });
    schema
}

/// The fields of a part of a table, with their schemas.
pub(super) fn part_fields() -> Map<String, Value> {
    let row = json!({
        "type": "object",
        "properties": {
            "id": { "type": "string" },
            "name": { "type": "string" },
            "place": { "type": "string" },
            "bytes": { "type": "integer" },
            "count": { "type": "integer" },
        },
        "required": ["name", "bytes", "count"],
        "additionalProperties": { "type": "integer" },
    });
    let fields = [
        ("group", json!({ "type": "string" })),
        ("bytesAre", json!({ "type": "string" })),
        ("countsAre", json!({ "type": "string" })),
        ("rowsOverlap", json!({ "type": "boolean" })),
        ("wholeBytes", json!({ "type": ["integer", "null"] })),
        ("total", json!({ "$ref": "#/$defs/sums" })),
        ("shown", json!({ "$ref": "#/$defs/sums" })),
        ("rest", json!({ "$ref": "#/$defs/sums" })),
        ("first", json!({ "type": "integer" })),
        ("rows", json!({ "type": "array", "items": row })),
        ("cursor", json!({ "type": ["string", "null"] })),
    ];
    fields.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

/// The schema of an object in which all fields are present.
pub(super) fn object_schema(fields: Map<String, Value>) -> Value {
    let required: Vec<String> = fields.keys().cloned().collect();
    json!({ "type": "object", "properties": fields, "required": required, "additionalProperties": false })
}

/// The fields that all answers start with.
pub(super) fn answer_fields() -> Map<String, Value> {
    let fields = [
        ("schema", json!({ "type": "string", "enum": [page::SCHEMA] })),
        ("handle", json!({ "type": "string" })),
        ("notes", json!({ "type": "array", "items": { "type": "string" } })),
    ];
    fields.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

pub(super) fn page_schema() -> Value {
    let mut fields = answer_fields();
    fields.append(&mut part_fields());
    with_sums(object_schema(fields))
}
