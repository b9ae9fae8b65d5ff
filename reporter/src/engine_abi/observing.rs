//! Lists the live blocks of this program, and logs its allocations.

use core::ffi::c_void;

use super::rows::ForeignText;
use super::{EngineTable, engine};

/// A live block, or an allocation in a log.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_structs, reason = "an engine fills it in, field by field")]
pub struct BlockRow {
    /// The address of the block's first byte.
    pub address: usize,
    /// The bytes that the program requested.
    pub requested: u64,
    /// The bytes that the program can use.
    pub usable: u64,
    /// The number of the stack that allocated the block; 0 if it is unknown.
    pub site: u64,
    /// The time of the allocation on the engine's clock; 0 for a live block.
    pub tick: u64,
    /// The time of the allocation in nanoseconds of the system's monotonic clock; 0 for a live block.
    pub nanoseconds: u64,
}

/// Receives one block. Unsafe to call: `context` must be the pointer that was passed together with this function, to
/// a call that has not returned yet.
pub type EachBlock = unsafe extern "C" fn(context: *mut c_void, block: &BlockRow);

/// Receives the name of a type. Unsafe to call, for the same reason as [`EachBlock`].
pub type EachName = unsafe extern "C" fn(context: *mut c_void, name: &EngineTypeName<'_>);

/// The name of a type.
#[repr(C)]
#[derive(Debug)]
pub struct EngineTypeName<'a>(ForeignText<'a>);

impl<'a> EngineTypeName<'a> {
    /// A name that an engine passes to [`EachName`].
    pub fn new(name: &'a str) -> Self {
        Self(ForeignText::new(name))
    }
}

/// The share and the number of allocations that an observer logs.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(clippy::exhaustive_structs, reason = "passes through the table")]
pub struct LogLimits {
    /// The probability with which the log keeps an allocation, from 0 to 1.
    pub probability: f64,
    /// The largest number of allocations that the log keeps.
    pub length: u64,
}

/// The length of a log, and its losses since it was opened or last drained.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "passes through the table")]
pub struct LogState {
    /// The number of allocations in the log.
    pub length: u64,
    /// Whether the log was full and has dropped allocations.
    pub overflowed: bool,
    /// The number of allocations and frees that the engine lost: its queue for signal handlers, and for threads that
    /// the engine does not know, was full.
    pub lost: u64,
}

/// Lends `each` to another library: gives `call` a C function and its context. The C function passes each block to
/// `each`.
#[allow(unsafe_code, reason = "lends a closure to another library")]
fn for_each_block(each: &mut dyn FnMut(&BlockRow), call: impl FnOnce(*mut c_void, EachBlock)) {
    unsafe extern "C" fn add(context: *mut c_void, block: &BlockRow) {
        // SAFETY: the maker of the table guarantees that the engine passes the context unchanged. The context points to
        // `each`, and no other code uses `each` until the call returns.
        let each = unsafe { &mut *context.cast::<&mut dyn FnMut(&BlockRow)>() };
        each(block);
    }
    let mut each = each;
    call((&raw mut each).cast(), add);
}

/// Calls `each` with every live block. False if no engine records blocks. The engine does not record allocations of
/// `each`.
#[allow(unsafe_code, reason = "calls a function of another library")]
pub fn for_each_live_block(each: &mut dyn FnMut(&BlockRow)) -> bool {
    let Some(engine) = engine().filter(|engine| (engine.is_running)()) else { return false };
    // SAFETY: `for_each_block` passes a context together with the function that expects it.
    for_each_block(each, |context, add| unsafe { (engine.live_blocks)(context, add) });
    true
}

/// The number of the stack that allocated the block around this address; `None` if no engine has the block and its
/// stack.
pub fn enclosing_site(address: usize) -> Option<u64> {
    let site = (engine()?.enclosing_site)(core::ptr::without_provenance(address));
    (site != 0).then_some(site)
}

/// The current time on the engine's clock; 0 without an engine.
pub(crate) fn ticks() -> u64 {
    engine().map_or(0, |engine| (engine.ticks)())
}

/// The Rust type of the blocks that a stack allocated; `None` if the stack does not contain a type.
#[allow(unsafe_code, reason = "calls a function of another library")]
pub fn site_type(site: u64) -> Option<String> {
    let engine = engine()?;
    // SAFETY: `set_name` takes a pointer to the option, which outlives the call.
    read_name(|context| unsafe { (engine.site_type)(site, context, set_name) })
}

/// Calls `call` with a context for [`set_name`], and returns the name that the engine has passed.
fn read_name(call: impl FnOnce(*mut c_void)) -> Option<String> {
    let mut name = None::<String>;
    call((&raw mut name).cast());
    name
}

#[allow(unsafe_code, reason = "an engine calls it")]
unsafe extern "C" fn set_name(context: *mut c_void, name: &EngineTypeName<'_>) {
    // SAFETY: the maker of the table guarantees that the engine passes the context unchanged. The context points to the
    // option of `read_name`, and no other code uses this option until the call returns.
    let into = unsafe { &mut *context.cast::<Option<String>>() };
    *into = Some(name.0.read());
}

/// The folder in which the engine's black box keeps its dumps, and the time in the name of this process's first dump
/// there (`u64::MAX` before the first). `None` without a black box.
#[allow(unsafe_code, reason = "calls a function of another library")]
pub fn black_box_folder() -> Option<(String, u64)> {
    let engine = engine()?;
    let mut first = u64::MAX;
    // SAFETY: `set_name` takes a pointer to the option, which outlives the call.
    let folder = read_name(|context| first = unsafe { (engine.black_box_folder)(context, set_name) })?;
    Some((folder, first))
}

/// The reason why an engine opened no log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoLog {
    /// No engine records allocations.
    NotRecording,
    /// The engine already has the maximum number of logs, or has no memory for this log.
    NoRoom,
    /// The engine records only a sample, so a log would miss allocations.
    Sampling,
}

/// The result of `open_log` from an engine that records only a sample.
pub const LOG_OF_SAMPLE: u32 = u32::MAX;

/// A log of allocations in an engine. Dropping it closes the log.
#[derive(Debug)]
pub(crate) struct AllocationLog {
    engine: &'static EngineTable,
    number: u32,
}

impl AllocationLog {
    /// Opens a log of all later allocations.
    pub(crate) fn open(limits: LogLimits) -> Result<Self, NoLog> {
        let engine = engine().filter(|engine| (engine.is_running)()).ok_or(NoLog::NotRecording)?;
        let number = (engine.open_log)(limits);
        match number {
            0 => Err(NoLog::NoRoom),
            LOG_OF_SAMPLE => Err(NoLog::Sampling),
            _ => Ok(Self { engine, number }),
        }
    }

    /// Changes the limits. Returns false and changes nothing if there is no memory for them.
    pub(crate) fn limit(&self, limits: LogLimits) -> bool {
        (self.engine.limit_log)(self.number, limits)
    }

    #[allow(unsafe_code, reason = "calls a function of another library")]
    pub(crate) fn state(&self) -> LogState {
        let mut state = LogState::default();
        // SAFETY: the maker of the table guarantees that the function writes one `LogState`, for which there is room.
        unsafe { (self.engine.log_state)(self.number, &raw mut state) };
        state
    }

    /// Empties the log into `each`, the oldest allocation first. The engine does not record allocations of `each`.
    #[allow(unsafe_code, reason = "calls a function of another library")]
    pub(crate) fn drain(&self, each: &mut dyn FnMut(&BlockRow)) {
        // SAFETY: `for_each_block` passes a context together with the function that expects it.
        for_each_block(each, |context, add| unsafe { (self.engine.drain_log)(self.number, context, add) });
    }

    /// Like [`drain`](Self::drain), but does not look up symbols. Returns the state of the log before draining.
    #[allow(unsafe_code, reason = "calls a function of another library")]
    #[cfg(feature = "live")]
    pub(crate) fn drain_places(&self, each: &mut dyn FnMut(&BlockRow)) -> LogState {
        let mut state = LogState::default();
        let into = &raw mut state;
        // SAFETY: `for_each_block` passes a context together with the function that expects it, and `into` has room
        // for a state.
        for_each_block(each, |context, add| unsafe {
            (self.engine.drain_log_places)(self.number, into, context, add);
        });
        state
    }
}

impl Drop for AllocationLog {
    fn drop(&mut self) {
        (self.engine.close_log)(self.number);
    }
}
