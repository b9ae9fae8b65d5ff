//! Checks the modules of about-memory's page, which are written in TypeScript: no cycles, and folders in one order.

use std::path::Path;

use super::arrows::{Arrows, cycles};

/// The folders of `src`. A folder uses only folders before it; files outside of folders may use all.
const FOLDERS: &[&str] = &["text", "data", "model", "widgets", "views", "serve", "fleet"];

fn source() -> std::path::PathBuf {
    super::root().join("about-memory/ui/src")
}

/// Maps each module to the modules that it imports. The value of an imported module is the position of one import.
fn arrows(src: &Path) -> Arrows {
    let mut arrows = Arrows::new();
    for path in super::files(src, ".ts") {
        let name = path.strip_prefix(src).unwrap().with_extension("");
        let from = name.to_str().unwrap().to_owned();
        let imported = arrows.entry(from.clone()).or_default();
        for (number, line) in super::read(&path).lines().enumerate() {
            // `} from ".."` ends an import of several lines. An import of a type counts, too.
            let end = line.split_once(" from \"").map(|(_, end)| end).and_then(|end| end.strip_suffix("\";"));
            let Some(to) = end.filter(|to| to.starts_with('.')) else { continue };
            let mut parts: Vec<&str> = from.split('/').collect();
            parts.pop();
            for part in to.split('/').filter(|part| *part != ".") {
                if part == ".." {
                    assert!(parts.pop().is_some(), "{from}: {to} is outside of the sources");
                } else {
                    parts.push(part);
                }
            }
            imported.entry(parts.join("/")).or_insert_with(|| format!("{}:{}", path.display(), number + 1));
        }
    }
    arrows
}

#[test]
fn modules_of_the_page_have_no_cycle() {
    let arrows = arrows(&source());
    assert!(arrows.len() > 50 && arrows.values().map(|to| to.len()).sum::<usize>() > 100, "few are read");
    for (from, imported) in &arrows {
        for (to, place) in imported {
            assert!(arrows.contains_key(to), "{from} imports {to}, which is not a module, at {place}");
        }
    }
    assert_eq!(cycles(&arrows), [].into());
}

#[test]
fn folders_of_the_page_use_only_those_before_them() {
    let folder = |module: &str| -> Option<usize> {
        let (folder, _) = module.split_once('/')?;
        let place = FOLDERS.iter().position(|one| *one == folder);
        Some(place.unwrap_or_else(|| panic!("the folder {folder} is not in FOLDERS")))
    };
    for (from, imported) in arrows(&source()) {
        for (to, place) in imported {
            let (Some(own), Some(other)) = (folder(&from), folder(&to)) else {
                assert!(folder(&to).is_some(), "{from} imports {to}, an entry file of the page, at {place}");
                continue;
            };
            assert!(other <= own, "{from} imports {to}, of a later folder, at {place}");
        }
    }
}
