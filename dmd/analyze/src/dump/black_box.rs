//! The facts of a dump that a black box has written.

use dmd_format::kept_dump::LifeSign;

/// The state of the memory when a black box wrote a dump. Its `Display` is a sentence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlackBoxDump {
    /// The reason for the dump: `limit`, `predicted`, `growth`, `pressure` or `no-memory`.
    pub reason: String,
    /// The origin of the limit: `cgroup`, `address-space` or `machine`.
    pub bound: String,
    /// The limit in bytes.
    pub limit: u64,
    /// The bytes that counted towards the limit.
    pub used: u64,
    /// The growth of the used bytes per second.
    pub rate: u64,
    /// The time of the dump in milliseconds since 1970.
    pub milliseconds: u64,
    /// The last sign of life that the process wrote after the dump; `None` if it wrote no sign.
    pub life: Option<LifeSign>,
    /// Whether the file ends early: the process was killed while it wrote the dump.
    pub is_partial: bool,
}
