//! The live blocks of this program, and its allocations as they happen.

use core::ffi::c_void;

use super::rows::ForeignText;
use super::{EngineTable, engine};

/// A block, or the allocation of one.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_structs, reason = "an engine fills it in, field by field")]
pub struct BlockRow {
    /// Where it starts.
    pub address: usize,
    /// Bytes that the program asked for.
    pub requested: u64,
    /// Bytes that the program can use.
    pub usable: u64,
    /// The number of the stack that allocated it; 0 if that is unknown.
    pub site: u64,
    /// When it was allocated, on the engine's clock; 0 for a live block.
    pub tick: u64,
    /// The same in nanoseconds of the system's monotonic clock.
    pub nanoseconds: u64,
}

/// Takes one block. Unsafe to call: `context` must be the one that was passed with the function, to a call that has
/// not returned yet.
pub type EachBlock = unsafe extern "C" fn(context: *mut c_void, block: &BlockRow);

/// Takes the name of a type. Unsafe to call, as [`EachBlock`].
pub type EachName = unsafe extern "C" fn(context: *mut c_void, name: &EngineTypeName<'_>);

/// The name of a type.
#[repr(C)]
#[derive(Debug)]
pub struct EngineTypeName<'a>(ForeignText<'a>);

impl<'a> EngineTypeName<'a> {
    /// For an engine that calls [`EachName`].
    pub fn new(name: &'a str) -> Self {
        Self(ForeignText::new(name))
    }
}

/// The share and the number of allocations that an observer logs.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(clippy::exhaustive_structs, reason = "passes through the table")]
pub struct LogLimits {
    /// The share of the allocations that the log gets, from 0 to 1.
    pub probability: f64,
    /// The most allocations that the log keeps.
    pub length: u64,
}

/// The state of a log since it was opened or drained last.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "passes through the table")]
pub struct LogState {
    /// Allocations in the log.
    pub length: u64,
    /// Whether the log has dropped allocations since it was full.
    pub overflowed: bool,
    /// Allocations that the engine could not note: a signal handler made them while the engine had no room.
    pub lost: u64,
}

/// Calls `each` for each item that `call` passes on to the function with the context.
#[allow(unsafe_code, reason = "lends a closure to another library")]
fn for_each_block(each: &mut dyn FnMut(&BlockRow), call: impl FnOnce(*mut c_void, EachBlock)) {
    unsafe extern "C" fn add(context: *mut c_void, block: &BlockRow) {
        // SAFETY: the maker of the table guarantees that the engine passes on the context, which is the closure below;
        // nothing else uses that closure until the call returns.
        let each = unsafe { &mut *context.cast::<&mut dyn FnMut(&BlockRow)>() };
        each(block);
    }
    let mut each = each;
    call((&raw mut each).cast(), add);
}

/// Calls `each` with every live block; false if no engine records blocks. The engine does not record what `each`
/// allocates.
#[allow(unsafe_code, reason = "calls a function of another library")]
pub fn for_each_live_block(each: &mut dyn FnMut(&BlockRow)) -> bool {
    let Some(engine) = engine().filter(|engine| (engine.is_running)()) else { return false };
    // SAFETY: `for_each_block` passes a context and the function that takes it.
    for_each_block(each, |context, add| unsafe { (engine.live_blocks)(context, add) });
    true
}

/// The number of the stack that allocated the block around this address; `None` if no engine knows it.
pub fn enclosing_site(address: usize) -> Option<u64> {
    let site = (engine()?.enclosing_site)(core::ptr::without_provenance(address));
    (site != 0).then_some(site)
}

/// The time now on the engine's clock; 0 without an engine.
pub(crate) fn ticks() -> u64 {
    engine().map_or(0, |engine| (engine.ticks)())
}

/// The Rust type of the blocks that a stack allocated, if the stack shows it.
#[allow(unsafe_code, reason = "calls a function of another library")]
pub fn site_type(site: u64) -> Option<String> {
    unsafe extern "C" fn set(context: *mut c_void, name: &EngineTypeName<'_>) {
        // SAFETY: the maker of the table guarantees that the engine passes on the context, which is the option below;
        // nothing else uses it until `site_type` returns.
        let into = unsafe { &mut *context.cast::<Option<String>>() };
        *into = Some(name.0.read());
    }
    let mut name = None;
    let engine = engine()?;
    // SAFETY: `set` takes a pointer to this option, which outlives the call.
    unsafe { (engine.site_type)(site, (&raw mut name).cast(), set) };
    name
}

/// Why an engine opened no log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoLog {
    /// Nothing records allocations.
    NotRecording,
    /// The engine has as many logs as it can have, or no memory for this one.
    NoRoom,
    /// The engine takes a sample, and so does not see every allocation.
    Sampling,
}

/// The engine's answer in place of a log's number while it takes a sample.
pub const LOG_OF_SAMPLE: u32 = u32::MAX;

/// A log of allocations in an engine. It ends when dropped.
#[derive(Debug)]
pub(crate) struct AllocationLog {
    engine: &'static EngineTable,
    number: u32,
}

impl AllocationLog {
    /// Opens a log, which gets allocations from now on.
    pub(crate) fn open(limits: LogLimits) -> Result<Self, NoLog> {
        let engine = engine().filter(|engine| (engine.is_running)()).ok_or(NoLog::NotRecording)?;
        let number = (engine.open_log)(limits);
        match number {
            0 => Err(NoLog::NoRoom),
            LOG_OF_SAMPLE => Err(NoLog::Sampling),
            _ => Ok(Self { engine, number }),
        }
    }

    /// Changes the limits; false, and nothing changes, if there is no memory for them.
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

    /// Empties the log into `each`, the oldest allocation first. The engine does not record what `each` allocates.
    #[allow(unsafe_code, reason = "calls a function of another library")]
    pub(crate) fn drain(&self, each: &mut dyn FnMut(&BlockRow)) {
        // SAFETY: `for_each_block` passes a context and the function that takes it.
        for_each_block(each, |context, add| unsafe { (self.engine.drain_log)(self.number, context, add) });
    }

    /// As [`drain`](Self::drain), where the engine looks up no symbols. Returns what the log contained.
    #[allow(unsafe_code, reason = "calls a function of another library")]
    #[cfg(feature = "live")]
    pub(crate) fn drain_places(&self, each: &mut dyn FnMut(&BlockRow)) -> LogState {
        let mut state = LogState::default();
        let into = &raw mut state;
        // SAFETY: `for_each_block` passes a context and the function that takes it, and `into` is a place for a state.
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
