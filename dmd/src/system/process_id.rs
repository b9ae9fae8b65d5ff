//! Identifies processes by number and namespace, among them the process that started recording.

use core::sync::atomic::{AtomicU32, Ordering};

static AT_START: ProcessCell = ProcessCell::nobody();

/// A process, by its number and the namespace of that number. Processes in other namespaces may have the same number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessIdentity {
    pub(crate) number: u32,
    /// 0 if the namespace is unknown.
    pub(crate) namespace: u32,
}

impl ProcessIdentity {
    pub(crate) fn this() -> Self {
        Self { number: std::process::id(), namespace: namespace() }
    }

    pub(crate) fn is(self, other: Self) -> bool {
        let same_namespace = self.namespace == other.namespace || self.namespace == 0 || other.namespace == 0;
        self.number == other.number && same_namespace
    }
}

#[cfg(target_os = "linux")]
fn namespace() -> u32 {
    use std::os::unix::fs::MetadataExt;

    std::fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino() as u32)
}

#[cfg(not(target_os = "linux"))]
fn namespace() -> u32 {
    0
}

/// Stores a process, so that all threads can read it.
pub(crate) struct ProcessCell {
    number: AtomicU32,
    namespace: AtomicU32,
}

impl ProcessCell {
    pub(crate) const fn nobody() -> Self {
        Self { number: AtomicU32::new(0), namespace: AtomicU32::new(0) }
    }

    pub(crate) fn store(&self, process: ProcessIdentity) {
        self.namespace.store(process.namespace, Ordering::Relaxed);
        self.number.store(process.number, Ordering::Release);
    }

    pub(crate) fn get(&self) -> Option<ProcessIdentity> {
        let number = self.number.load(Ordering::Acquire);
        (number != 0).then(|| ProcessIdentity { number, namespace: self.namespace.load(Ordering::Relaxed) })
    }
}

/// Stores this process as the process that started recording.
pub(crate) fn start() -> ProcessIdentity {
    let this = ProcessIdentity::this();
    AT_START.store(this);
    this
}

/// Whether this process is a fork of the process that started recording, no matter by which system call.
pub(crate) fn is_another_than_started() -> bool {
    AT_START.get().is_some_and(|start| !ProcessIdentity::this().is(start))
}
