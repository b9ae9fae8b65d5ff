//! Reads and writes one line of JSON: an object whose values are read by key.

use std::borrow::Cow;

use memory_report::json::push_string;
use memory_report::reader::{ScanStop, TextScan};

/// The reason why a line is not an object, or a value has the wrong type.
pub(super) type JsonFault = String;

/// The members of an object. If a key occurs several times, the last value counts.
pub(super) struct JsonObject<'t>(Vec<(Cow<'t, str>, &'t str)>);

impl<'t> JsonObject<'t> {
    /// Reads a line that contains one object and no other text.
    pub(super) fn read(line: &'t str) -> Result<Self, JsonFault> {
        let mut scan = TextScan::new(line, true);
        let members = members(&mut scan).and_then(|members| match scan.at_end()? {
            true => Ok(members),
            false => scan.expected("the end of the line"),
        });
        match members {
            Ok(members) => Ok(Self(members)),
            Err(ScanStop::More) => Err("the line ends too early".to_owned()),
            Err(ScanStop::Expected(at, what)) => Err(format!("expected {what} at column {}", at + 1)),
            Err(ScanStop::TooDeep(at)) => Err(format!("values are nested too deeply at column {}", at + 1)),
        }
    }

    /// The value of a required key.
    pub(super) fn required<T: FromJson>(&self, key: &str) -> Result<T, JsonFault> {
        self.optional(key)?.ok_or_else(|| format!("missing field `{key}`"))
    }

    /// The value of a key; `None` if the key is missing or its value is `null`.
    pub(super) fn optional<T: FromJson>(&self, key: &str) -> Result<Option<T>, JsonFault> {
        match self.0.iter().rev().find(|(found, _)| found == key) {
            None | Some((_, "null")) => Ok(None),
            Some((_, value)) => match T::from_json(value) {
                Some(value) => Ok(Some(value)),
                None => Err(format!("`{key}` is not {}", T::WHAT)),
            },
        }
    }
}

fn members<'t>(scan: &mut TextScan<'t>) -> Result<Vec<(Cow<'t, str>, &'t str)>, ScanStop> {
    let mut members = Vec::new();
    scan.expect(b'{', "`{`")?;
    if scan.eat(b'}')? {
        return Ok(members);
    }
    loop {
        let key = scan.string()?;
        scan.expect(b':', "`:`")?;
        scan.peek()?;
        let start = scan.at();
        scan.skip(1)?;
        members.push((key, scan.since(start)));
        if !scan.eat(b',')? {
            scan.expect(b'}', "`,` or `}`")?;
            return Ok(members);
        }
    }
}

/// A type that can be read from JSON.
pub(super) trait FromJson: Sized {
    /// The name of the type, for the error.
    const WHAT: &'static str;

    /// Reads the text of one value.
    fn from_json(value: &str) -> Option<Self>;
}

impl FromJson for bool {
    const WHAT: &'static str = "true or false";

    fn from_json(value: &str) -> Option<Self> {
        value.parse().ok()
    }
}

impl FromJson for u32 {
    const WHAT: &'static str = "a whole number below 2^32";

    fn from_json(value: &str) -> Option<Self> {
        value.parse().ok()
    }
}

impl FromJson for u64 {
    const WHAT: &'static str = "a whole number below 2^64";

    fn from_json(value: &str) -> Option<Self> {
        value.parse().ok()
    }
}

impl FromJson for String {
    const WHAT: &'static str = "a string";

    fn from_json(value: &str) -> Option<Self> {
        TextScan::new(value, true).string().ok().map(Cow::into_owned)
    }
}

impl FromJson for Vec<String> {
    const WHAT: &'static str = "a list of strings";

    fn from_json(value: &str) -> Option<Self> {
        let mut scan = TextScan::new(value, true);
        let mut list = Self::new();
        scan.expect(b'[', "`[`").ok()?;
        if scan.eat(b']').ok()? {
            return Some(list);
        }
        loop {
            list.push(scan.string().ok()?.into_owned());
            if !scan.eat(b',').ok()? {
                return scan.eat(b']').ok()?.then_some(list);
            }
        }
    }
}

/// A value that a line can contain.
pub(super) enum JsonValue<'a> {
    Number(u64),
    /// `None` becomes `null`.
    Amount(Option<u64>),
    Text(&'a str),
    Texts(&'a [String]),
    True,
}

/// A line with an object, including the newline.
pub(super) fn line(members: &[(&str, JsonValue<'_>)]) -> String {
    let mut to = String::from("{");
    for (at, (key, value)) in members.iter().enumerate() {
        if at > 0 {
            to.push(',');
        }
        push_string(&mut to, key);
        to.push(':');
        match value {
            JsonValue::Number(number) | JsonValue::Amount(Some(number)) => to.push_str(&number.to_string()),
            JsonValue::Amount(None) => to.push_str("null"),
            JsonValue::True => to.push_str("true"),
            JsonValue::Text(text) => push_string(&mut to, text),
            JsonValue::Texts(texts) => {
                to.push('[');
                for (at, text) in texts.iter().enumerate() {
                    if at > 0 {
                        to.push(',');
                    }
                    push_string(&mut to, text);
                }
                to.push(']');
            }
        }
    }
    to.push_str("}\n");
    to
}
