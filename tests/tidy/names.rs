//! Names of types explain themselves, and a bare name belongs to one type.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::{files, members, root};

/// A declaration of a type in a crate's sources.
struct TypeDeclaration {
    name: String,
    folder: String,
    file: String,
    is_public: bool,
}

/// The types of all crates of the product.
fn declarations() -> Vec<TypeDeclaration> {
    let mut found = Vec::new();
    for folder in members()
        .into_iter()
        .filter(|folder| !["benches", "examples", "tests"].iter().any(|start| folder.starts_with(start)))
    {
        let sources = root().join(&folder).join("src");
        for path in files(&sources, ".rs") {
            let file = path.strip_prefix(&sources).unwrap().display().to_string();
            let text = fs::read_to_string(&path).unwrap();
            let mut within_test = false;
            for line in text.lines() {
                within_test |= line.starts_with("#[cfg(test)]");
                if within_test {
                    continue;
                }
                if let Some((is_public, name)) = declared(line) {
                    let (folder, file) = (folder.clone(), file.clone());
                    found.push(TypeDeclaration { name: name.to_owned(), folder, file, is_public });
                }
            }
        }
    }
    found
}

/// The name of the type that a line declares at the top level of a module, and whether the type is public.
fn declared(line: &str) -> Option<(bool, &str)> {
    let (is_public, rest) = match line.strip_prefix("pub ") {
        Some(rest) => (true, rest),
        None => (
            false,
            line.strip_prefix("pub(").map_or(line, |rest| rest.split_once(") ").map_or("", |(_, rest)| rest)),
        ),
    };
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let name =
        ["struct ", "enum ", "trait ", "union ", "type "].iter().find_map(|word| rest.strip_prefix(word))?;
    let end =
        name.find(|character: char| !character.is_alphanumeric() && character != '_').unwrap_or(name.len());
    Some((is_public, &name[..end]))
}

/// The number of words in a name in camel case.
fn words(name: &str) -> usize {
    let bytes = name.as_bytes();
    (0..bytes.len())
        .filter(|&at| {
            bytes[at].is_ascii_uppercase()
                && (at == 0
                    || !bytes[at - 1].is_ascii_uppercase()
                    || bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase))
        })
        .count()
}

/// Participles and pronouns that do not show to what they belong.
const BARE: &[&str] = &[
    "Asked", "Begun", "Between", "Both", "Chosen", "Counted", "Cut", "Done", "Each", "Found", "Given",
    "Gone", "Held", "Here", "Kept", "Known", "Learn", "Left", "Lost", "Made", "Marked", "Merged", "More",
    "Named", "Nothing", "Of", "Open", "Other", "Others", "Read", "Rest", "Said", "Same", "Seen", "Sent",
    "Shown", "Sorted", "Taken", "There", "Those", "Told", "Waiting", "Wanted", "Within", "Without",
    "Written",
];

#[test]
fn a_public_type_has_a_name_of_its_own() {
    let mut crates: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for declaration in declarations().into_iter().filter(|declaration| declaration.is_public) {
        crates.entry(declaration.name).or_default().insert(declaration.folder);
    }
    crates.retain(|_, folders| folders.len() > 1);
    assert!(crates.is_empty(), "types of the same name: {crates:#?}");
}

#[test]
fn at_most_two_modules_have_a_type_of_one_name() {
    let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for TypeDeclaration { name, folder, file, .. } in declarations() {
        places.entry(name).or_default().insert(format!("{folder}/src/{file}"));
    }
    places.retain(|_, files| files.len() > 2);
    assert!(places.is_empty(), "give each of these types a name that shows the difference: {places:#?}");
}

#[test]
fn no_type_is_called_by_a_bare_participle_or_pronoun() {
    let bare: Vec<_> = declarations()
        .into_iter()
        .filter(|declaration| words(&declaration.name) == 1 && BARE.contains(&declaration.name.as_str()))
        .map(|TypeDeclaration { name, folder, file, .. }| format!("{name} in {folder}/src/{file}"))
        .collect();
    assert!(bare.is_empty(), "use a noun that names the thing: {bare:#?}");
}

/// The name `of` explains neither the work of a function nor its result.
#[test]
fn no_function_is_called_of() {
    let mut found = Vec::new();
    for folder in members()
        .into_iter()
        .filter(|folder| !["benches", "examples", "tests"].iter().any(|start| folder.starts_with(start)))
    {
        for path in files(&root().join(&folder).join("src"), ".rs") {
            let text = fs::read_to_string(&path).unwrap();
            for (number, line) in (1..).zip(text.lines()) {
                if line.contains("fn of(") || line.contains("fn of<") || line.contains("fn of_") {
                    found.push(format!("{}:{number}: {}", path.display(), line.trim()));
                }
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// The maximum number of names that a crate's front page re-exports.
const SCREEN: usize = 50;

/// The number of names in the `pub use` items of a source file, without items inside of modules.
fn front_page(text: &str) -> usize {
    let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = format!("\n{}", code.join("\n"));
    let items = code.split("\npub use ").skip(1).map(|item| item.split(';').next().unwrap_or_default());
    let has_name = |part: &&str| part.contains(char::is_alphanumeric);
    items.map(|item| item.split(',').filter(has_name).count()).sum()
}

#[test]
fn the_front_page_of_a_crate_fits_one_screen() {
    let four = "//! a\npub use a::b;\npub use c::{\n    D, E,\n    // x, y\n    F as G,\n};\nmod m {\n    pub use x::y;\n}";
    assert_eq!(front_page(four), 4);
    for folder in members() {
        let path = root().join(&folder).join("src/lib.rs");
        let Ok(text) = fs::read_to_string(path) else { continue };
        let names = front_page(&text);
        assert!(names <= SCREEN, "{folder} re-exports {names} names; group some of them in a public module");
    }
}
