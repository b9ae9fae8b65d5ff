//! Checks values against the part of JSON Schema 2020-12 that this repository's schemas use. An unknown keyword is an
//! error, so that no rule of a schema is ignored.

use serde_json::Value;

/// Returns the faults of a value. Each fault names its place.
pub(crate) fn faults(schema: &Value, value: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    check(schema, schema, value, "$", &mut faults);
    faults
}

#[track_caller]
pub(crate) fn assert_valid(schema: &Value, value: &Value, what: &str) {
    let faults = faults(schema, value);
    assert!(faults.is_empty(), "{what}: {faults:#?}");
}

/// Keywords without a rule for values.
const REMARKS: [&str; 6] = ["$schema", "$id", "$defs", "title", "description", "properties"];

fn check(root: &Value, schema: &Value, value: &Value, place: &str, faults: &mut Vec<String>) {
    if let Some(is_allowed) = schema.as_bool() {
        if !is_allowed {
            faults.push(format!("{place} is not allowed"));
        }
        return;
    }
    let rules = schema.as_object().unwrap_or_else(|| panic!("{place}: {schema} is not a schema"));
    let none = serde_json::Map::new();
    let properties = rules.get("properties").map_or(&none, |properties| properties.as_object().unwrap());
    for (rule, wanted) in rules {
        let mut fault = |is_right: bool| {
            if !is_right {
                faults.push(format!("{place} is {value}, not {rule} {wanted}"));
            }
        };
        match &**rule {
            "type" => match wanted {
                Value::Array(types) => fault(types.iter().any(|name| is_of(value, name.as_str().unwrap()))),
                name => fault(is_of(value, name.as_str().unwrap())),
            },
            "enum" => fault(wanted.as_array().unwrap().contains(value)),
            "const" => fault(wanted == value),
            "minimum" => fault(value.as_f64().is_none_or(|number| number >= wanted.as_f64().unwrap())),
            "maximum" => fault(value.as_f64().is_none_or(|number| number <= wanted.as_f64().unwrap())),
            "maxLength" => fault(
                value.as_str().is_none_or(|text| text.chars().count() as u64 <= wanted.as_u64().unwrap()),
            ),
            "required" => {
                for name in wanted.as_array().unwrap() {
                    let name = name.as_str().unwrap();
                    if value.as_object().is_some_and(|object| !object.contains_key(name)) {
                        faults.push(format!("{place}.{name} is missing"));
                    }
                }
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, wanted, item, &format!("{place}[{index}]"), faults);
                }
            }
            "additionalProperties" => {
                for (name, item) in value.as_object().into_iter().flatten() {
                    if !properties.contains_key(name) {
                        check(root, wanted, item, &format!("{place}.{name}"), faults);
                    }
                }
            }
            "oneOf" => {
                let matches = wanted.as_array().unwrap().iter().filter(|one| {
                    let mut inner = Vec::new();
                    check(root, one, value, place, &mut inner);
                    inner.is_empty()
                });
                let count = matches.count();
                if count != 1 {
                    faults.push(format!("{place} matches {count} forms of {wanted}"));
                }
            }
            "$ref" => {
                let name = wanted.as_str().unwrap();
                let pointer = name.strip_prefix('#').unwrap_or_else(|| panic!("{name} is in another file"));
                let target = root.pointer(pointer).unwrap_or_else(|| panic!("{name} is missing"));
                check(root, target, value, place, faults);
            }
            remark => assert!(REMARKS.contains(&remark), "{place}: the keyword {remark} is unknown"),
        }
    }
    for (name, rule) in properties {
        if let Some(item) = value.get(name) {
            check(root, rule, item, &format!("{place}.{name}"), faults);
        }
    }
}

fn is_of(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("{other} is no type"),
    }
}

#[test]
fn a_wrong_value_has_faults() {
    let schema = serde_json::json!({
        "type": "object",
        "properties": { "a": { "type": "integer" }, "b": { "$ref": "#/$defs/text" } },
        "required": ["a"],
        "additionalProperties": false,
        "$defs": { "text": { "type": ["string", "null"] } },
    });
    for right in [r#"{"a": 1}"#, r#"{"a": -1, "b": null}"#] {
        assert_valid(&schema, &serde_json::from_str(right).unwrap(), right);
    }
    for wrong in ["[]", "{}", r#"{"a": 1.5}"#, r#"{"a": 1, "b": 2}"#, r#"{"a": 1, "c": 2}"#] {
        assert_eq!(faults(&schema, &serde_json::from_str(wrong).unwrap()).len(), 1, "{wrong}");
    }
}
