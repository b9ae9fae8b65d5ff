//! The code to write so that a reporter reports a suggestion's memory.

use core::fmt;

use super::Suggestion;
use crate::names::segments;
use crate::print::CleanText;

/// The features of memory-reporter that measure the types of a crate, each with the crate's name and major version.
const FEATURES: &[&str] = &[
    "arc-swap1",
    "arrayvec07",
    "bitvec1",
    "bumpalo3",
    "bytes1",
    "chrono04",
    "compact_str010",
    "dashmap6",
    "either1",
    "hashbrown017",
    "indexmap2",
    "lru018",
    "num-bigint05",
    "once_cell1",
    "ordered-float5",
    "parking_lot012",
    "petgraph08",
    "roaring011",
    "serde_json1",
    "slab04",
    "slotmap1",
    "smallvec1",
    "smol_str03",
    "thin-vec02",
    "time03",
    "tinyvec1",
    "tokio1",
    "triomphe01",
    "url2",
    "uuid1",
];

impl Suggestion {
    /// The function of the program that uses the memory.
    fn program_function(&self) -> &str {
        self.caller.as_ref().map_or(&self.function, |(function, _)| function)
    }

    /// Whether the program's function is written in C or C++: its source file is not a Rust file or, if the file is
    /// unknown, its name contains no crate.
    fn is_of_c(&self) -> bool {
        let (function, place) = match &self.caller {
            Some((function, place)) => (function, place),
            None if self.dependency => return false,
            None => (&self.function, &self.place),
        };
        let has_source = !place.is_empty() && !place.contains(" +0x");
        if has_source { !place.contains(".rs") } else { !function.contains("::") }
    }

    /// Whether the name of the program's function is from a symbol, not from debug information. Most symbols contain no
    /// types.
    pub(super) fn lacks_debug_information(&self) -> bool {
        let is_ours = !self.dependency && self.function != "???";
        is_ours && self.type_name.is_none() && self.place.contains(" +0x")
    }

    /// The type of the program's function, if it is a method.
    fn owner(&self) -> Option<&str> {
        let function = self.program_function();
        let path = function.strip_prefix('<').map_or(function, |rest| {
            let end = rest.find(" as ").or(rest.find('>')).unwrap_or(rest.len());
            &rest[..end]
        });
        let parts = segments(path);
        let is_type = |part: &&&str| part.starts_with(|c: char| c.is_ascii_uppercase());
        let part = parts.iter().rev().find(is_type)?;
        Some(part.split('<').next().unwrap_or(part))
    }

    /// The program's type that the collection contains.
    pub(super) fn kept(&self) -> Option<&str> {
        let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        self.type_name.as_deref()?.split(|c| !is_path(c)).find(|path| path.contains("::"))
    }

    /// A path for the report: the module of the contained type, if the type belongs to the program, and otherwise the
    /// module of the program's function. Without a module, the path contains the type of the function, or the crate.
    fn report_path(&self) -> String {
        let function = self.program_function().trim_start_matches(['<', '&']);
        let own = self.kept().filter(|_| self.foreign.is_none());
        let parts = segments(own.unwrap_or(function));
        let module = parts.get(1).filter(|part| {
            parts.len() > 2 && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        });
        let name = match (module, self.owner()) {
            (Some(module), _) => (*module).to_owned(),
            (None, Some(owner)) => kebab(owner),
            (None, None) => parts.first().map_or_else(|| self.module.clone(), |part| (*part).to_owned()),
        };
        format!("explicit/{}", name.replace('_', "-"))
    }
}

impl Suggestion {
    pub(super) fn write_advice(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.function == "???" {
            return f.write_str(
                "   no symbols: build with debug information, or give its folder with --symbols\n",
            );
        }
        if self.is_of_c() {
            return f.write_str(
                "   report it where the program holds it: DMDReport(pointer) for each block, then DMDDump(path) (dmd.h)\n",
            );
        }
        let what = self.type_name.as_deref().unwrap_or("it");
        if self.dependency && self.caller.is_none() {
            return writeln!(
                f,
                "   report your value that keeps {} alive, or register a reporter for {}",
                CleanText(what),
                CleanText(&self.module)
            );
        }
        if let Some(foreign) = &self.foreign {
            return self.write_for_foreign(f, foreign);
        }
        let what = match (self.kept(), self.owner()) {
            (Some(kept), _) => format!("{kept} and for the value that keeps it"),
            (None, Some(owner)) => owner.to_owned(),
            (None, None) => format!("the type that keeps {what}"),
        };
        writeln!(f, "   derive MallocSizeOf for {}, and register a reporter:", CleanText(&what))?;
        self.write_reporter(f, &self.report_path())
    }

    /// Writes the advice for a type of another package: the program cannot derive for it.
    fn write_for_foreign(&self, f: &mut fmt::Formatter<'_>, foreign: &str) -> fmt::Result {
        let package = foreign.replace('_', "-");
        if let Some(feature) = feature_for(foreign) {
            writeln!(
                f,
                "   memory-reporter measures {foreign}'s types: cargo add memory-reporter --features {feature}"
            )?;
            f.write_str("   derive MallocSizeOf for your type that keeps them, and register a reporter:\n")?;
            return self.write_reporter(f, &self.report_path());
        }
        let path = CleanText(&format!("{}/{package}", self.report_path())).to_string();
        let kept = self.kept().and_then(|kept| kept.rsplit("::").next()).unwrap_or("the type");
        let (kept, foreign) = (CleanText(kept), CleanText(foreign));
        writeln!(
            f,
            "   {kept} is {foreign}'s, so you cannot derive MallocSizeOf for it. Measure it with a function:"
        )?;
        writeln!(
            f,
            "   #[malloc_size_of(with = measure)] before your field of {foreign}'s type (each = measure for"
        )?;
        f.write_str("   the elements of a collection), and\n")?;
        f.write_str(
            "   fn measure<R: Reading>(value: &FieldType, ops: &mut MallocSizeOfOps<R>) -> usize {\n       \
             ops.field(\"items\", value.items())  // values that its public methods return\n   }\n",
        )?;
        f.write_str("   or, if they return only a pointer into a block, ops.enclosing(pointer, layout);\n")?;
        f.write_str("   or without a field, in a reporter:\n")?;
        writeln!(f, "   reports.heap_with(\"{path}\", |ops| measure(&VALUE, ops), \"{}\");", describe(&path))
    }

    fn write_reporter(&self, f: &mut fmt::Formatter<'_>, path: &str) -> fmt::Result {
        let path = CleanText(path).to_string();
        writeln!(
            f,
            "   memory_reporter::define_reporter!(\"{path}\", Heap, &VALUE, \"{}\");",
            describe(&path)
        )
    }
}

/// The description of a report.
fn describe(path: &str) -> String {
    format!("Memory used by {}.", path.trim_start_matches("explicit/").replace(['-', '/'], " "))
}

/// The feature of memory-reporter that measures the types of a crate.
pub(super) fn feature_for(name: &str) -> Option<&'static str> {
    let crate_name = |feature: &str| feature.trim_end_matches(|c: char| c.is_ascii_digit()).replace('-', "_");
    FEATURES.iter().find(|feature| crate_name(feature) == name).copied()
}

fn kebab(name: &str) -> String {
    let mut text = String::new();
    for (at, c) in name.char_indices() {
        if c.is_ascii_uppercase() && at > 0 {
            text.push('-');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}
