//! The name of this process, for reports without a process name.

/// The name for reports without a process name: the name of the process that runs this code.
pub(crate) fn own_process_name() -> String {
    format!("Main Process (pid {})", std::process::id())
}
