//! Checks the README, the guide in docs/ and the pages beside them: links, anchors, code, pictures, commands.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{files, read, root};

/// The Markdown files for readers of the repository. Golden files are output, and rustdoc checks the links of its own
/// pages.
fn pages() -> Vec<PathBuf> {
    let rustdoc = root().join("reporter/src/docs");
    let is_golden = |path: &PathBuf| path.components().any(|part| part.as_os_str() == "golden");
    files(root(), ".md").into_iter().filter(|path| !is_golden(path) && !path.starts_with(&rustdoc)).collect()
}

/// The text without fenced blocks.
fn prose(text: &str) -> String {
    let mut in_block = false;
    let lines = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        in_block ^= is_fence;
        !in_block && !is_fence
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The targets of a page's links and pictures, except in code.
fn targets(text: &str) -> Vec<String> {
    let prose = prose(text);
    let parts = prose.split("](").collect::<Vec<_>>();
    let mut targets = Vec::new();
    let mut backticks = 0;
    for pair in parts.windows(2) {
        backticks += pair[0].matches('`').count();
        if backticks % 2 == 0 {
            targets.push(pair[1].split([')', ' ']).next().unwrap().to_owned());
        }
    }
    targets
}

/// The anchors of a page's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text);
    let headings = headings.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let text = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        text.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
    };
    headings.map(anchor).collect()
}

/// The links of a page that lead to no target.
fn dead_links(page: &Path, text: &str) -> Vec<String> {
    let is_dead = |target: &String| {
        if target.starts_with("http://") || target.starts_with("https://") {
            return false;
        }
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let file = if file.is_empty() { page.to_owned() } else { page.parent().unwrap().join(file) };
        let inside = file.canonicalize().is_ok_and(|file| file.starts_with(root().canonicalize().unwrap()));
        !inside
            || !anchor.is_empty()
                && !fs::read_to_string(&file).is_ok_and(|text| anchors(&text).contains(anchor))
    };
    targets(text).into_iter().filter(is_dead).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let mut seen = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        seen += targets(&text).len();
        assert_eq!(dead_links(&page, &text), [""; 0], "{}", page.display());
    }
    assert!(seen > 25, "only {seen} links were found");
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let page = root().join("docs/src/limits.md");
    let text = "[a](dmd.md#reading-a-dump) [b](dmd.md) [c](https://x.example/) `[d](no.md)`\n\
        ```\n[e](no.md)\n```\n[f](no.md) [g](#no) ![h](../no.png) [i](dmd.md#no) [j](../../../no)";
    assert_eq!(dead_links(&page, text), ["no.md", "#no", "../no.png", "dmd.md#no", "../../../no"]);
}

#[test]
fn the_summary_lists_every_page() {
    let listed: BTreeSet<_> = targets(&read("docs/src/SUMMARY.md")).into_iter().collect();
    let pages = files(&root().join("docs/src"), ".md");
    let names = pages.iter().map(|page| page.file_name().unwrap().to_str().unwrap().to_owned());
    assert_eq!(listed, names.filter(|name| name != "SUMMARY.md").collect());
}

#[test]
fn the_code_of_the_guide_is_compiled() {
    let compiled = read("tests/support/guide.rs");
    for page in files(&root().join("docs/src"), ".md") {
        let name = page.file_name().unwrap().to_str().unwrap();
        let text = fs::read_to_string(&page).unwrap();
        let fences = text.lines().filter(|line| line.starts_with("```"));
        for opening in fences.step_by(2) {
            let known = ["```rust", "```rust,standalone_crate", "```sh", "```toml", "```text", "```sql"]
                .contains(&opening);
            assert!(
                known,
                "{name}: {opening}: the guide must not contain such blocks, nor Rust that is not compiled"
            );
        }
        let has_code = text.contains("```rust\n") || text.contains("```rust,standalone_crate\n");
        assert_eq!(compiled.contains(&format!("/docs/src/{name}\"")), has_code, "{name}");
    }
}

/// Only the example compiles the guide's code for tantivy, since the example is a separate workspace.
#[test]
fn the_guide_shows_the_code_of_the_tantivy_example() {
    let (page, example) = (read("docs/src/foreign-types.md"), read("examples/tantivy_index/src/index.rs"));
    let shown =
        page.split("```text\nimpl MemoryReporter for Search").nth(1).expect("the code of the reporter");
    let shown = format!("impl MemoryReporter for Search{}", shown.split("```").next().unwrap());
    assert!(example.ends_with(&shown), "docs/src/foreign-types.md differs from the end of the example");
}

#[test]
fn the_readme_fits_on_two_screens() {
    let lines = read("README.md").lines().count();
    assert!(lines <= 100, "{lines} lines");
}

#[test]
fn pictures_are_small_and_shown() {
    let pictures = files(&root().join("docs"), ".png");
    assert!(!pictures.is_empty());
    let texts: Vec<_> = pages().iter().map(|page| fs::read_to_string(page).unwrap()).collect();
    // A program makes the listed pictures from the live page.
    let (make, serve) = (read("docs/pictures/make"), read("docs/pictures/serve.mjs"));
    for picture in pictures {
        let name = picture.file_name().unwrap().to_str().unwrap();
        let bytes = fs::metadata(&picture).unwrap().len();
        assert!(bytes <= 150_000, "{name}: {bytes} bytes");
        assert!(
            texts.iter().any(|text| targets(text).iter().any(|to| to.ends_with(name))),
            "{name}: not shown"
        );
        let is_made = make.contains(name)
            || serve.contains(&format!("\"{}\"", name.trim_end_matches(".png")))
            || serve.contains(&format!("\"{name}\""));
        assert!(is_made, "docs/pictures/make does not make {name}");
    }
}

/// Runs the lines in a new program beside a clone, as the README describes.
#[test]
fn the_readme_s_cargo_add_lines_work() {
    let readme = read("README.md");
    let lines: Vec<_> = readme.lines().filter(|line| line.starts_with("cargo add ")).collect();
    assert!(lines.len() >= 2, "{lines:?}");
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(root(), folder.path().join("memory-reporter")).unwrap();
    let program = folder.path().join("my-program");
    fs::create_dir_all(program.join("src")).unwrap();
    fs::write(program.join("src/main.rs"), "fn main() {}\n").unwrap();
    let manifest = "[package]\nname = \"my-program\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
    fs::write(program.join("Cargo.toml"), manifest).unwrap();
    for line in lines {
        let line = line.replacen("cargo", env!("CARGO"), 1);
        let output = Command::new("sh")
            .args(["-c", &line])
            .current_dir(&program)
            .env("CARGO_NET_OFFLINE", "true")
            .output()
            .unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let manifest = fs::read_to_string(program.join("Cargo.toml")).unwrap();
    for name in ["memory-reporter", "about-memory"] {
        assert!(manifest.contains(&format!("\n{name} = {{ ")), "{manifest}");
    }
}
