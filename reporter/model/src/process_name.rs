//! The name of the process that looks at reports.

/// The process that a report without a process name is about: the one that runs this code.
pub(crate) fn own_process_name() -> String {
    format!("Main Process (pid {})", std::process::id())
}
