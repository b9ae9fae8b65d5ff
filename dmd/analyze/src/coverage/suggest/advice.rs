//! The code to write so that a reporter or a tag reports a suggestion's memory.

use core::fmt;

use super::SuggestedSite;
use super::crates::OTHER_CRATES;
use super::owner::MemoryOwner;
use super::site::{OwnerKey, base_name};
use crate::print::CleanText;

/// The maximum number of the program's functions that advice lists.
const CALLERS: usize = 3;

/// The maximum number of lines that advice lists for a function.
const LINES: usize = 4;

impl SuggestedSite {
    /// Whether the name of the program's function is from a symbol, not from debug information. Most symbols contain no
    /// types.
    pub(super) fn lacks_debug_information(&self) -> bool {
        let is_ours = !self.dependency && self.function != "???";
        is_ours && self.type_name.is_none() && self.place.contains(" +0x")
    }
}

impl MemoryOwner {
    /// The text after the amounts in a suggestion's first line: the owner.
    pub(super) fn title(&self) -> String {
        match &self.key {
            OwnerKey::Type(name) | OwnerKey::Function(name) | OwnerKey::C(name) => {
                format!(": {}", CleanText(name))
            }
            OwnerKey::Library(name) => format!(": {}, a dependency", CleanText(name)),
            OwnerKey::System(name) => format!(": {}, a system library", CleanText(name)),
            OwnerKey::Unknown(_) => String::new(),
        }
    }

    /// Whether the advice contains a tag.
    pub(super) fn has_tag(&self) -> bool {
        match self.key {
            OwnerKey::Type(_) | OwnerKey::Function(_) => self.in_arc.is_none(),
            OwnerKey::Library(ref name) => !is_support(name),
            OwnerKey::C(_) | OwnerKey::System(_) | OwnerKey::Unknown(_) => false,
        }
    }

    pub(super) fn write_advice(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            OwnerKey::Unknown(_) => f.write_str(
                "   no symbols: build with debug information, or pass the folder of the symbols to --symbols\n",
            ),
            OwnerKey::C(_) => f.write_str(
                "   report it where the program holds it: DMDReport(pointer) for each block, then DMDDump(path) (dmd.h)\n",
            ),
            OwnerKey::System(_) => f.write_str(
                "   C code allocated it: pass the functions of a memory_reporter::counters::CountingMalloc to the\n   \
                 library, or report the library's own figure\n",
            ),
            OwnerKey::Library(name) => self.write_for_library(f, name),
            OwnerKey::Type(_) | OwnerKey::Function(_) if !self.types.is_empty() => self.write_derive(f),
            OwnerKey::Type(_) | OwnerKey::Function(_) => self.write_tag(f, "at the start of"),
        }
    }

    fn write_for_library(&self, f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
        if is_support(name) {
            return writeln!(f, "   {name} allocates this for itself");
        }
        if self.calls.is_empty() {
            let more = if self.is_cut { ": record more frames with --max-frames 256" } else { "" };
            writeln!(f, "   no function of the program is on these stacks{more}")?;
        }
        self.write_tag(f, "before the call in")?;
        if OTHER_CRATES.contains(&name) {
            writeln!(
                f,
                "   or measure the values: memory_reporter::docs::other_crates has the code for {name}"
            )?;
        }
        Ok(())
    }

    /// Writes the code for a derive and a reporter. If no known `Arc` holds the value, also writes the code for a tag.
    fn write_derive(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.features.is_empty() {
            let features: Vec<&str> = self.features.iter().copied().collect();
            writeln!(f, "   cargo add memory-reporter --features {}", features.join(","))?;
        }
        let types = CleanText(&listed(&self.types)).to_string();
        writeln!(f, "   #[derive(memory_reporter::MallocSizeOf)]  // on {types}")?;
        let path = self.path();
        let description = describe(&path);
        if let Some(held) = &self.in_arc {
            let name = CleanText(held.rsplit("::").next().unwrap_or(held)).to_string();
            return write!(
                f,
                "   impl memory_reporter::MemoryReporter for {name} {{\n       \
                 fn collect_reports(&self, reports: &mut memory_reporter::Reports) {{\n           \
                 reports.heap(\"{path}\", self, \"{description}\");\n       }}\n   }}\n   \
                 let _registration = memory_reporter::register_weak(&value);  // value: the Arc of {name}\n",
            );
        }
        writeln!(
            f,
            "   memory_reporter::define_reporter!(\"{path}\", Heap, &VALUE, \"{description}\");  // VALUE: your static"
        )?;
        if let Some(held) = self.other_arcs.first() {
            let more = if self.other_arcs.len() > 1 { "an Arc such as" } else { "the" };
            let held = CleanText(held);
            writeln!(
                f,
                "   or, if {more} Arc<{held}> holds VALUE: derive for {held}, and memory_reporter::register_weak(&value);"
            )?;
        }
        self.write_tag(f, "or, without a static: at the start of")
    }

    fn write_tag(&self, f: &mut fmt::Formatter<'_>, lead: &str) -> fmt::Result {
        let path = self.path();
        let callers = self.callers();
        let tag = if lead.starts_with("or") { "or tag" } else { "tag" };
        if self.in_future {
            writeln!(f, "   {tag} the futures in {callers}:")?;
            return writeln!(f, "   memory_reporter::tags::Tag::new(\"{path}\").future(FUTURE).await");
        }
        match callers.is_empty() {
            true => writeln!(f, "   {tag} the call in the program that leads to these blocks:")?,
            false => writeln!(f, "   {lead} {callers}:")?,
        }
        writeln!(f, "   let _tag = memory_reporter::tag(\"{path}\");")
    }

    /// The functions of the program with their lines.
    fn callers(&self) -> String {
        let mut functions: Vec<(String, &str, Vec<&str>)> = Vec::new();
        for (function, place) in &self.calls {
            let function = base_name(function);
            let (file, line) = place.rsplit_once(':').unwrap_or((place, ""));
            match functions.iter_mut().find(|(known, of, _)| *known == function && *of == file) {
                Some((_, _, lines)) => lines.push(line),
                None => functions.push((function, file, vec![line])),
            }
        }
        let more = functions.len().saturating_sub(CALLERS);
        let named = functions.iter().take(CALLERS).map(|(function, file, lines)| {
            let lines = lines.iter().take(LINES).copied().collect::<Vec<_>>().join(", ");
            let colon = if lines.is_empty() { "" } else { ":" };
            CleanText(&format!("{function} ({file}{colon}{lines})")).to_string()
        });
        let mut names: Vec<String> = named.collect();
        if more > 0 {
            names.push(format!("{more} more function{}", if more > 1 { "s" } else { "" }));
        }
        listed(&names)
    }

    /// A path for the report: a library, the module of a type or function, or the name of the type or function.
    fn path(&self) -> String {
        let name = match &self.key {
            OwnerKey::Library(name) | OwnerKey::System(name) => name.clone(),
            OwnerKey::Type(path) | OwnerKey::Function(path) | OwnerKey::C(path) | OwnerKey::Unknown(path) => {
                let parts: Vec<&str> = path.split("::").collect();
                let is_module = |part: &&str| part.starts_with(|c: char| c.is_ascii_lowercase());
                match parts[..] {
                    [_, module, _, ..] if is_module(&module) => module.to_owned(),
                    [.., parent, "main"] => parent.to_owned(),
                    [.., last] => kebab(last),
                    [] => String::new(),
                }
            }
        };
        let plain = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
        format!("explicit/{}", name.replace('_', "-").chars().filter(plain).collect::<String>())
    }
}

/// Whether the crate is a standard library, `memory_reporter` or `dmd`. Such a crate has only few blocks of its own.
/// These blocks need no reporter.
fn is_support(name: &str) -> bool {
    ["std", "core", "alloc", "memory_reporter", "memory_report", "dmd"].contains(&name)
}

/// Names in a sentence: `A, B and C`.
fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The description of a report.
fn describe(path: &str) -> String {
    format!("Memory used by {}.", path.trim_start_matches("explicit/").replace(['-', '/'], " "))
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
