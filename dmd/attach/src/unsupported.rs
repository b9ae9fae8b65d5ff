//! Systems on which no process can be attached to.

use std::path::PathBuf;

use crate::error::AttachError;
use crate::request::{AttachReply, AttachRequest, DetachReply};

/// Returns an error on this system.
///
/// # Errors
///
/// Returns an error in every case.
pub fn attach(_: u32, _: &AttachRequest<'_>) -> Result<AttachReply, AttachError> {
    Err(refusal())
}

/// Returns an error on this system.
///
/// # Errors
///
/// Returns an error in every case.
pub fn detach(_: u32) -> Result<DetachReply, AttachError> {
    Err(refusal())
}

fn refusal() -> AttachError {
    AttachError::Failed("about-memory attaches on Linux on x86-64 and aarch64 only".to_owned())
}

/// No process can be attached to on this system.
pub fn processes_named(_: &str) -> Vec<u32> {
    Vec::new()
}

/// No process can be attached to on this system.
pub fn user_and_variable(_: u32, _: &str) -> (u32, Option<PathBuf>) {
    (0, None)
}

/// No process can be attached to on this system.
pub fn sees_same_files(_: u32) -> bool {
    true
}
