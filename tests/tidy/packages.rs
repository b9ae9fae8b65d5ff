//! Checks that each crate that may be published is a package that other projects can use.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use toml::Table;

use super::{files, manifest, members, read, root};

/// The folders of the crates that may be published.
pub(super) fn published() -> Vec<String> {
    let may =
        |folder: &String| manifest(folder)["package"].get("publish").and_then(|p| p.as_bool()) != Some(false);
    members().into_iter().filter(may).collect()
}

pub(super) fn name(folder: &str) -> String {
    manifest(folder)["package"]["name"].as_str().unwrap().to_owned()
}

/// The categories of crates.io that the workspace's crates use.
const CATEGORIES: &[&str] = &[
    "command-line-utilities",
    "data-structures",
    "development-tools::debugging",
    "development-tools::profiling",
    "encoding",
    "memory-management",
    "parser-implementations",
    "visualization",
];

#[test]
fn published_crates_say_what_they_are() {
    for folder in published() {
        let manifest = manifest(&folder);
        let package = manifest["package"].as_table().unwrap();
        let text = |key: &str| package.get(key).and_then(|value| value.as_str()).unwrap_or_default();
        let list = |key: &str| -> Vec<String> {
            let list = package.get(key).and_then(|value| value.as_array()).cloned().unwrap_or_default();
            list.iter().map(|entry| entry.as_str().unwrap().to_owned()).collect()
        };
        assert!(text("description").contains(' '), "{folder}: description");
        assert_eq!(text("readme"), "README.md", "{folder}");
        assert_eq!(text("documentation"), format!("https://docs.rs/{}", name(&folder)));
        let keywords = list("keywords");
        assert!((1..=5).contains(&keywords.len()), "{folder}: keywords");
        for keyword in keywords {
            let is_word = keyword.starts_with(|c: char| c.is_ascii_alphanumeric())
                && keyword.len() <= 20
                && keyword.chars().all(|c| c.is_ascii_alphanumeric() || "-_+".contains(c));
            assert!(is_word, "{folder}: {keyword}");
        }
        let categories = list("categories");
        assert!((1..=5).contains(&categories.len()), "{folder}: categories");
        for category in categories {
            assert!(CATEGORIES.contains(&category.as_str()), "{folder}: {category}");
        }
        // Readers of a package have only the package's files, so links in its README must not lead into the repository.
        let readme = read(format!("{folder}/README.md"));
        assert!(readme.starts_with(&format!("# {}\n", name(&folder))), "{folder}: README.md");
        for target in readme.split("](").skip(1) {
            assert!(target.starts_with("https://"), "{folder}/README.md: {target}");
        }
    }
}

#[test]
fn published_crates_depend_on_published_crates() {
    let ours: BTreeSet<_> = members().iter().map(|folder| name(folder)).collect();
    let published_names: BTreeSet<_> = published().iter().map(|folder| name(folder)).collect();
    for folder in published() {
        let manifest = manifest(&folder);
        let dependencies = manifest.get("dependencies").and_then(|table| table.as_table()).cloned();
        for dependency in dependencies.unwrap_or_else(Table::new).keys().filter(|name| ours.contains(*name)) {
            assert!(published_names.contains(dependency), "{folder}: {dependency} is not published");
        }
    }
}

/// The files that the sources in a folder with this name include, relative to the folder.
fn included(folder: &str) -> BTreeSet<String> {
    let sources = root().join(folder).join("src");
    let mut found = BTreeSet::new();
    for path in files(&sources, ".rs") {
        let text = fs::read_to_string(&path).unwrap();
        for call in ["include_str!(\"", "include_bytes!(\"", "include!(\""] {
            for argument in text.split(call).skip(1) {
                let file = path.parent().unwrap().join(argument.split('"').next().unwrap());
                let file = file.canonicalize().unwrap();
                let relative = file.strip_prefix(root().join(folder).canonicalize().unwrap());
                let relative =
                    relative.unwrap_or_else(|_| panic!("{} is outside of the package", file.display()));
                found.insert(relative.display().to_string());
            }
        }
    }
    found
}

/// The files in a package.
fn contents(package: &Path) -> BTreeSet<String> {
    let output = Command::new("tar").arg("-tzf").arg(package).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let list = String::from_utf8(output.stdout).unwrap();
    list.lines().map(|line| line.split_once('/').unwrap().1.to_owned()).collect()
}

#[test]
fn cargo_packages_every_published_crate() {
    let target = tempfile::tempdir().unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["package", "--no-verify", "--offline", "--allow-dirty", "--target-dir"]).arg(target.path());
    for folder in published() {
        cargo.args(["-p", &name(&folder)]);
    }
    let output = cargo.current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let workspace: Table = read("Cargo.toml").parse().unwrap();
    let version = workspace["workspace"]["package"]["version"].as_str().unwrap();
    for folder in published() {
        let package = target.path().join(format!("package/{}-{version}.crate", name(&folder)));
        let bytes = fs::metadata(&package).unwrap().len();
        assert!(
            bytes < 10 << 20,
            "{folder}: the package has {bytes} bytes, and crates.io accepts at most 10 MiB"
        );
        let contents = contents(&package);
        for file in ["Cargo.toml", "README.md", "LICENSE-MIT", "LICENSE-APACHE", "src/lib.rs"] {
            assert!(contents.contains(file), "{folder}: {file} is not in the package");
        }
        for file in included(&folder) {
            assert!(contents.contains(&file), "{folder}: {file} is included but not in the package");
        }
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            assert_eq!(read(format!("{folder}/{licence}")), read(licence), "{folder}");
        }
        let stray = contents.iter().find(|file| file.starts_with("ui/") || file.contains("node_modules"));
        assert_eq!(stray, None, "{folder}");
    }
}

/// The downloaded package `about-memory` builds `libdmd.so` with its own manifest.
#[test]
fn libdmd_has_the_same_manifest_in_the_package() {
    let parsed = |path: &str| -> Table { read(path).parse().unwrap() };
    let (package, preload, workspace) =
        (parsed("about-memory/libdmd/manifest.toml"), parsed("dmd/preload/Cargo.toml"), parsed("Cargo.toml"));
    assert_eq!(package["profile"]["dist"], workspace["profile"]["dist"]);
    assert_eq!(package["lib"]["name"], preload["lib"]["name"]);
    assert_eq!(package["lib"]["crate-type"], preload["lib"]["crate-type"]);
    let settings = workspace["workspace"].as_table().unwrap();
    for key in ["version", "edition"] {
        assert_eq!(package["package"][key], settings["package"][key], "{key}");
    }
    // A dependency with `workspace = true` has the workspace's version, and adds its own features to the workspace's.
    let whole = |name: &str, dependency: &toml::Value| {
        let inherited = settings["dependencies"].get(name).filter(|_| dependency.get("workspace").is_some());
        let field = |of: Option<&toml::Value>, key: &str| of.and_then(|of| of.get(key)).cloned();
        let version =
            |of: Option<&toml::Value>| of.filter(|of| of.is_str()).cloned().or(field(of, "version"));
        let features = [inherited, Some(dependency)]
            .into_iter()
            .filter_map(|of| field(of, "features"))
            .flat_map(|list| list.as_array().unwrap().clone())
            .map(|feature| feature.as_str().unwrap().to_owned());
        let features: BTreeSet<String> = features.collect();
        (version(inherited).or(version(Some(dependency))), features, field(Some(dependency), "package"))
    };
    let list = |manifest: &Table| -> Vec<_> {
        let table = manifest["dependencies"].as_table().unwrap().clone();
        table.iter().map(|(name, dependency)| (name.clone(), whole(name, dependency))).collect()
    };
    assert_eq!(list(&package), list(&preload));
}
