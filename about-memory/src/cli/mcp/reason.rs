//! The messages of failures, for assistants.

use std::path::Path;

use super::super::Failure;
use super::super::file_kind::{self, FileKind};

/// Returns the message of a failure about a file.
pub(super) fn reason(path: &Path, failure: Failure) -> String {
    let lines = match failure {
        Failure::File(file, error) => {
            let error = file_kind::explain(&path.to_string_lossy(), &error, FileKind::SHOWN)
                .unwrap_or_else(|| error.to_string());
            vec![format!("{file}: {error}")]
        }
        other => other.lines(FileKind::SHOWN),
    };
    lines.join("; ")
}
