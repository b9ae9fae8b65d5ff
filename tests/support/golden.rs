//! Golden text: tests compare it with their output, and write it only on request.

use std::path::Path;

/// Asserts that the file at `path`, relative to the workspace, holds `text`.
///
/// `UPDATE_GOLDEN=1` writes the file; otherwise a missing file fails the test.
pub fn golden(path: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        std::fs::write(&path, text).expect("the golden file can be written");
        return;
    }
    let there = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; UPDATE_GOLDEN=1 writes it", path.display()));
    assert_eq!(there, text, "{} is stale; UPDATE_GOLDEN=1 rewrites it", path.display());
}
