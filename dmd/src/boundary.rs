//! The boundary between programs and the engine: hooks of allocators, entry points, and reporters of programs that
//! link `memory-reporter`.

#[cfg(engine = "native")]
pub(crate) mod attach;
#[cfg_attr(not(target_os = "linux"), path = "boundary/black_box_none.rs")]
#[cfg_attr(target_os = "linux", allow(unsafe_code, reason = "keeps a path for the life of the process"))]
pub(crate) mod black_box;
pub(crate) mod dark_matter;
#[allow(unsafe_code, reason = "takes paths as C strings")]
pub(crate) mod dumping;
#[cfg(engine = "native")]
#[allow(unsafe_code, reason = "handles signals")]
pub(crate) mod ending;
#[allow(unsafe_code, reason = "exports functions to C")]
pub(crate) mod engine_abi;
#[allow(unsafe_code, reason = "functions for C")]
pub(crate) mod entry;
pub(crate) mod hooks_off;
#[cfg_attr(engine = "portable", allow(dead_code, reason = "only `libdmd.so` starts to listen"))]
pub(crate) mod listening;
#[cfg(feature = "analyze")]
pub(crate) mod live_frames;
pub(crate) mod logs;
#[cfg(engine = "native")]
#[allow(unsafe_code, reason = "a naked function")]
pub(crate) mod mapping_hooks;
#[cfg(engine = "native")]
#[allow(unsafe_code, reason = "reads the environment before main")]
pub(crate) mod preload;
pub(crate) mod previous_dump;
#[allow(unsafe_code, reason = "calls and is called through a table of C functions")]
pub(crate) mod recorder;
#[allow(unsafe_code, reason = "calls functions of other programs")]
pub(crate) mod reporter_hosts;
#[allow(unsafe_code, reason = "ends the process")]
pub(crate) mod self_test;
pub(crate) mod sites;
#[allow(unsafe_code, reason = "runs before and after main")]
pub(crate) mod start;
#[cfg(feature = "analyze")]
pub(crate) mod unreported;
#[cfg_attr(engine = "portable", path = "boundary/with_caller_portable.rs")]
#[allow(unsafe_code, reason = "naked functions")]
mod with_caller;
