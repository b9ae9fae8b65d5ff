//! The advice of `Suggestions` works: the test writes it into a program, which then compiles and reports its memory.

use std::fs;
use std::path::Path;

use dmd::analyze::Suggestions;
use dmd::analyze::symbolize::SymbolOptions;

use crate::support::{build_folder, command, preloaded, succeed};

const PROGRAM: &str = r#"
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

memory_reporter::global_allocator!(std::alloc::System);

struct Entry {
    name: String,
    words: Vec<u32>,
}

impl Entry {
    #[inline(never)]
    fn new(key: u32) -> Self {
        Self { name: format!("an entry with the key {key}"), words: vec![key; 300] }
    }
}

struct Cache {
    entries: HashMap<u32, Entry>,
}

impl Cache {
    #[inline(never)]
    fn fill(&mut self) {
        (0..300).for_each(|key| drop(self.entries.insert(key, Entry::new(key))));
    }
}

struct Page {
    bytes: Vec<u8>,
}

static PAGES: Mutex<Vec<Page>> = Mutex::new(Vec::new());

impl Page {
    #[inline(never)]
    fn load(&mut self) {
        self.bytes = vec![1; 70_000];
        let page = Page { bytes: vec![2; 80_000] };
        PAGES.lock().unwrap().push(page);
    }
}

#[inline(never)]
fn squares() -> Vec<u64> {
    (0..20_000).map(|number| number * number).collect()
}

#[inline(never)]
fn compressor() -> flate2::Compress {
    let level = flate2::Compression::default();
    flate2::Compress::new(level, false)
}

fn main() {
    let cache = Arc::new(Mutex::new(Cache { entries: HashMap::new() }));
    // the Arc of Cache
    cache.lock().unwrap().fill();
    let mut page = Page { bytes: Vec::new() };
    page.load();
    PAGES.lock().unwrap().push(page);
    let squares = squares();
    let compressor = compressor();
    let held = cache.lock().unwrap();
    let first = &held.entries[&0];
    let pages = PAGES.lock().unwrap().iter().map(|page| page.bytes.len()).sum::<usize>();
    println!("{} {} {} {} {pages}", first.name.len(), first.words.len(), squares.len(), compressor.total_in());
    // At the exit, a collection skips held locks.
    drop(held);
    std::process::exit(0);
}
"#;

/// Builds a program, and returns the suggestions for the memory that it holds at its end.
fn suggestions(folder: &Path, source: &str) -> Suggestions {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let manifest = format!(
        "[package]\nname = \"advised\"\nversion = \"1.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\nflate2 = {{ version = \"1\", default-features = false, features = [\"rust_backend\"] }}\n\
         memory-reporter = {{ path = \"{}\" }}\n\n[workspace]\n\n\
         [profile.dev.package.\"*\"]\ndebug = \"line-tables-only\"\n",
        root.join("reporter").display()
    );
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    fs::create_dir_all(folder.join("src")).unwrap();
    fs::write(folder.join("src/main.rs"), source).unwrap();
    let mut cargo = command(env!("CARGO"));
    let build = build_folder();
    let target = build.parent().unwrap();
    cargo
        .args(["build", "--quiet", "--offline", "--target-dir"])
        .arg(target)
        .env("CARGO_PROFILE_DEV_DEBUG", "2");
    succeed(cargo.current_dir(folder));
    let file = folder.join("dump.json");
    let options = format!("--stacks=full --quiet --dump-at-exit --output={}", file.display());
    succeed(&mut preloaded(target.join("debug/advised"), &options));
    let mut dump = dmd::analyze::read(&file).unwrap();
    dump.symbolize(&SymbolOptions::new());
    Suggestions::new(dump, 20).unwrap()
}

/// The lines of the program with the advice, as the program's author would write it.
fn advised(text: &str) -> String {
    let mut lines: Vec<String> = PROGRAM.lines().map(str::to_owned).collect();
    // Each inserted text goes before the line with this index.
    let mut inserted: Vec<(usize, String)> = Vec::new();
    let find = |lines: &[String], start: &str| {
        lines.iter().position(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start}: {text}"))
    };
    let mut end = String::new();
    // Libraries that run in every program have a few blocks, too. The test ignores suggestions about these libraries.
    let is_about = |suggestion: &&str| {
        suggestion
            .lines()
            .next()
            .is_some_and(|title| title.contains(": advised::") || title.contains(": flate2,"))
    };
    let suggestions = text.split("\n\n").filter(is_about).flat_map(str::lines);
    let mut advice = suggestions.map(|line| line.strip_prefix("   ").unwrap_or(line));
    while let Some(line) = advice.next() {
        if let Some((derive, types)) = line.split_once("  // on ") {
            for name in types.replace(" and ", ", ").split(", ") {
                let name = name.strip_prefix("advised::").unwrap();
                inserted.push((find(&lines, &format!("struct {name} ")), derive.to_owned()));
            }
        } else if line.starts_with("impl ") {
            let rest: Vec<&str> = advice.by_ref().take_while(|line| *line != "}").collect();
            end += &format!("{line}\n{}\n}}\n", rest.join("\n"));
        } else if line.starts_with("memory_reporter::define_reporter!") {
            end += &format!("{}\n", line.replace("VALUE,", "PAGES,"));
            // The next two lines recommend a tag instead of the reporter, so the test skips them.
            advice.by_ref().take(2).for_each(drop);
        } else if let Some((registration, place)) = line.split_once("  // value: ") {
            let at = find(&lines, &format!("    // {place}"));
            inserted.push((at, registration.replace("&value", "&cache")));
        } else if let Some(place) = line.strip_prefix("at the start of ") {
            let (function, _) = place.split_once(" (").unwrap();
            let start = find(&lines, &format!("fn {}(", function.strip_prefix("advised::").unwrap()));
            inserted.push((start + 1, advice.next().unwrap().to_owned()));
        } else if let Some((_, place)) = line.split_once("before the call in ") {
            let place = place.split_once("(src/main.rs:").unwrap().1;
            let number: usize = place.strip_suffix("):").unwrap().parse().unwrap();
            inserted.push((number - 1, advice.next().unwrap().to_owned()));
        }
    }
    inserted.sort_by_key(|(at, _)| core::cmp::Reverse(*at));
    inserted.into_iter().for_each(|(at, line)| lines.insert(at, line));
    format!("{}\n{end}", lines.join("\n"))
}

#[test]
fn the_advice_compiles_and_reports_the_memory() {
    let folder = tempfile::tempdir().unwrap();
    let before = suggestions(folder.path(), PROGRAM);
    let text = before.to_string();
    for part in [
        "#[derive(memory_reporter::MallocSizeOf)]  // on advised::Cache and advised::Entry\n",
        "impl memory_reporter::MemoryReporter for Cache {\n",
        "memory_reporter::register_weak(&value);",
        "#[derive(memory_reporter::MallocSizeOf)]  // on advised::Page\n",
        "memory_reporter::define_reporter!(\"explicit/page\", Heap, &VALUE, ",
        "at the start of advised::squares (src/main.rs:",
        "before the call in advised::compressor (src/main.rs:",
        "memory_reporter::tag(\"explicit/flate2\");",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(before.unreported.usable() > 900_000, "{text}");
    let source = advised(&text);
    let after = suggestions(folder.path(), &source);
    let left = after.unreported.usable();
    assert!(left * 50 < before.unreported.usable(), "{source}\n{after}");
}
