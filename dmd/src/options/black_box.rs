//! The options of the black box.

/// A black box: the process writes a dump shortly before it reaches the limit of its memory, while it still can. A
/// process that the kernel kills for lack of memory runs no code of its own any more.
///
/// ```
/// use dmd::{BlackBox, Dmd, Mode, Options};
/// use std::alloc::System;
///
/// const BOX: BlackBox = BlackBox::new().near_limit(85).keep(3).folder("/var/lib/my-server/dumps");
///
/// #[global_allocator]
/// static ALLOCATOR: Dmd<System> =
///     Dmd::switched_on(System, Options::new().mode(Mode::Live).sample_bytes(512 << 10).quiet(true).black_box(BOX));
/// # fn main() {}
/// ```
///
/// In `$DMD` it is `--dump-near-limit=85%,keep=3,dir=/var/lib/my-server/dumps`.
///
/// The limit is the least of all memory groups (cgroups) around the process, of its address space (`RLIMIT_AS`) and of
/// the machine. A thread of the engine polls what is used of it, without the pages of files that the kernel can free.
/// The thread writes a dump if the use reaches [`near_limit`](Self::near_limit), at each halving of the rest, if the
/// limit would be reached within moments, and if the use has grown by a fifth since the last dump. If the allocator has
/// no memory, the thread that asked for it writes the dump.
///
/// The box works on Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlackBox {
    /// The share of the limit at which the process writes a dump, in percent, 1 to 99. Default: 90.
    pub near_limit: u8,
    /// The number of dumps to keep in the folder, of all processes together, 1 to 1,000. Default: 5.
    pub keep: u16,
    /// The folder of the dumps. Several processes may share it. Default: the folder in which the process started.
    pub folder: Option<&'static str>,
    /// The maximum number of bytes of all dumps in the folder. Default: 1 GiB.
    pub max_disk: u64,
}

impl Default for BlackBox {
    fn default() -> Self {
        Self::new()
    }
}

const MOST_KEPT: u16 = 1000;

impl BlackBox {
    /// The description of the values of `--dump-near-limit`, for messages.
    pub(super) const TAKES: &'static str =
        "a share such as 90%, then keep=NUMBER, dir=FOLDER, max-disk=SIZE, with commas; no value means 90%";

    /// A box with the default values.
    pub const fn new() -> Self {
        Self { near_limit: 90, keep: 5, folder: None, max_disk: 1 << 30 }
    }

    /// Sets [`near_limit`](Self::near_limit); a value outside of 1 to 99 is changed to the nearest of these.
    #[must_use]
    pub const fn near_limit(mut self, percent: u8) -> Self {
        self.near_limit = match percent {
            0 => 1,
            1..=99 => percent,
            _ => 99,
        };
        self
    }

    /// Sets [`keep`](Self::keep); a value outside of 1 to 1,000 is changed to the nearest of these.
    #[must_use]
    pub const fn keep(mut self, dumps: u16) -> Self {
        self.keep = match dumps {
            0 => 1,
            1..=MOST_KEPT => dumps,
            _ => MOST_KEPT,
        };
        self
    }

    /// Sets [`folder`](Self::folder).
    #[must_use]
    pub const fn folder(mut self, path: &'static str) -> Self {
        self.folder = Some(path);
        self
    }

    /// Sets [`max_disk`](Self::max_disk); 0 counts as 1.
    #[must_use]
    pub const fn max_disk(mut self, bytes: u64) -> Self {
        self.max_disk = if bytes == 0 { 1 } else { bytes };
        self
    }

    /// Reads the value of `--dump-near-limit`.
    pub(super) fn parse(value: &'static str) -> Option<Self> {
        let mut options = Self::new();
        for (at, word) in value.split(',').enumerate() {
            match word.split_once('=') {
                None if at == 0 => {
                    let percent = super::number(word.strip_suffix('%')?)?;
                    options.near_limit =
                        u8::try_from(percent).ok().filter(|percent| (1..=99).contains(percent))?;
                }
                Some(("keep", dumps)) => {
                    let dumps = u16::try_from(super::number(dumps)?).ok();
                    options.keep = dumps.filter(|dumps| (1..=MOST_KEPT).contains(dumps))?;
                }
                Some(("dir", folder)) => {
                    options.folder = Some(Some(folder).filter(|folder| !folder.is_empty())?);
                }
                Some(("max-disk", size)) => {
                    options.max_disk = Some(super::bytes(size)? as u64).filter(|bytes| *bytes > 0)?;
                }
                _ => return None,
            }
        }
        Some(options)
    }
}
