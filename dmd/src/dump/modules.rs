//! The executable and the libraries that are or were loaded: their addresses and their builds.
//!
//! A dump gets these modules from the loader. A hook never asks the loader, since a thread that allocates may hold the
//! loader's lock. In two cases a dump asks the kernel instead. In the child of a fork, the lock may never become free,
//! because another thread of the parent held it. An engine thread must not take the lock.

#[cfg_attr(target_os = "macos", path = "modules/macos.rs")]
#[cfg_attr(windows, path = "modules/windows.rs")]
mod loaded;
#[cfg(target_os = "linux")]
mod mapped;

use std::fmt::Write;

#[cfg(target_os = "linux")]
use crate::system::engine_threads;
use crate::system::path_bytes::path_of;
use crate::system::{fork, process};
use crate::tables::seen_modules::{self, LoadedLibrary, ModuleSample};
use crate::tables::trace_id::TraceId;
#[cfg(target_os = "linux")]
pub(crate) use loaded::changes;

/// One loaded file.
#[derive(Debug, Default)]
pub(crate) struct DumpModule {
    /// The loader's name for a library, or the path of the executable. If a later build is at the path now, the text
    /// also contains the start of this module's build id or sample.
    pub(crate) path: Vec<u8>,
    /// The address in the process minus the address in the file.
    pub(crate) bias: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The build id in hexadecimal; empty if the file has no build id.
    pub(crate) build_id: String,
    /// The hash of some contents of a module without a build id; zeros for other modules.
    sample: ModuleSample,
    /// For an unloaded module, the first node of the tree whose address is in the module; otherwise `None`.
    pub(crate) since: Option<TraceId>,
}

/// Loaded modules in order of addresses, then unloaded modules, the newest first.
#[derive(Debug, Default)]
pub(crate) struct DumpModules {
    all: Vec<DumpModule>,
    loaded: usize,
}

/// The name of this library in dumps if its file has no name.
static OWN_NAME: &str = "libdmd.so";
/// The starts of the paths of files without a name, as the loader and the kernel show them.
const NAMELESS: [&[u8]; 3] = [b"/proc/self/fd/", b"/memfd:", b"/tmp/#"];

/// The number of digits of a build id that are enough to distinguish two builds of one library.
const SHORT_ID: usize = 8;

/// The maximum length of a frame's text, as in Firefox. Longer texts are cut.
const LONGEST_FRAME: usize = 1023;

impl DumpModules {
    pub(crate) fn now() -> Self {
        #[cfg(target_os = "linux")]
        let by_loader = !fork::is_child() && !engine_threads::is_engine_thread();
        #[cfg(not(target_os = "linux"))]
        let by_loader = !fork::is_child();
        Self::listed(by_loader)
    }

    /// Like [`now`](Self::now), without the lock of the loader where the system can list the modules.
    pub(crate) fn without_loader() -> Self {
        Self::listed(false)
    }

    fn listed(by_loader: bool) -> Self {
        #[cfg(target_os = "linux")]
        let mut modules = if by_loader { loaded::modules() } else { mapped::modules() };
        #[cfg(not(target_os = "linux"))]
        let mut modules = loaded::modules();
        modules.sort_by_key(|module| module.start);
        // `about-memory attach` loads this library from a file without a name.
        let own = (&raw const OWN_NAME).addr();
        let own = modules.iter_mut().find(|module| (module.start..module.end).contains(&own));
        if let Some(own) = own.filter(|own| NAMELESS.iter().any(|start| own.path.starts_with(start))) {
            own.path = OWN_NAME.as_bytes().to_vec();
        }
        let loaded = modules.len();
        for seen in seen_modules::iter() {
            let LoadedLibrary { start, end, bias, path, build_id, sample, .. } = seen.module;
            let (mut path, build_id) = (absolute(path.to_bytes()), hexadecimal(build_id));
            let is_build = |module: &DumpModule| (&module.build_id, module.sample) == (&build_id, sample);
            // The kernel lists paths without symbolic links, so paths are compared only if the loader listed them.
            let is_it = |module: &DumpModule| {
                (module.start, module.end) == (start, end)
                    && is_build(module)
                    && (module.path == path || !by_loader)
            };
            if !modules[..loaded].iter().any(is_it) {
                // A later build is at the path. Readers must not look up symbols of this module there.
                if modules.iter().any(|later| later.path == path && !is_build(later)) {
                    let id = if build_id.is_empty() { hexadecimal(&sample) } else { build_id.clone() };
                    let short = id.get(..SHORT_ID).unwrap_or(&id);
                    path.extend_from_slice(format!(" (build {short})").as_bytes());
                }
                modules.push(DumpModule {
                    path,
                    bias,
                    start,
                    end,
                    build_id,
                    sample,
                    since: Some(seen.since),
                });
            }
        }
        Self { all: modules, loaded }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &DumpModule> {
        self.all.iter()
    }

    /// The index of the module to which the return address of `node` belongs. `node` is a node of the tree.
    pub(crate) fn find(&self, node: TraceId, return_address: usize) -> Option<usize> {
        // The call is just before the return address.
        let pc = return_address.saturating_sub(1);
        let (loaded, unloaded) = self.all.split_at(self.loaded);
        let holds = |module: &DumpModule| (module.start..module.end).contains(&pc);
        let at = loaded.partition_point(|module| module.start <= pc);
        let now = at.checked_sub(1).filter(|at| holds(&loaded[*at]));
        if !unloaded.iter().any(holds) {
            return now;
        }
        // Several modules were at this place: take the last module that was on a stack before the node was made.
        let seen = seen_modules::iter().find(|seen| seen.holds(pc) && seen.since.0 <= node.0);
        let then = seen.and_then(|seen| {
            let (since, start) = (Some(seen.since), seen.module.start);
            unloaded.iter().position(|module| (module.since, module.start) == (since, start))
        });
        then.map(|then| self.loaded + then).or(now)
    }

    /// The call before a return address, as an address in the file of the module.
    pub(crate) fn offset(&self, module: usize, return_address: usize) -> Option<u64> {
        let pc = return_address.saturating_sub(1);
        self.all.get(module).map(|module| pc.wrapping_sub(module.bias) as u64)
    }

    /// The text of a frame. The frame's number is always 0, since stacks share frames.
    pub(crate) fn describe(&self, module: Option<usize>, return_address: usize) -> String {
        let place =
            module.and_then(|module| Some((self.all.get(module)?, self.offset(module, return_address)?)));
        let mut text = match place {
            None => "#00: ??? (???:???)".to_owned(),
            Some((module, offset)) => {
                format!("#00: ???[{} +0x{offset:x}]", String::from_utf8_lossy(&module.path))
            }
        };
        let mut len = text.len().min(LONGEST_FRAME);
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        text.truncate(len);
        text
    }
}

/// Makes a path absolute. A program may load a library by a path relative to its current folder, which usually is the
/// folder in which it started.
fn absolute(path: &[u8]) -> Vec<u8> {
    if path.starts_with(b"/") || !path.contains(&b'/') {
        return path.to_vec();
    }
    process::absolute(&path_of(path)).into_os_string().into_encoded_bytes()
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
