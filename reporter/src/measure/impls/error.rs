//! Errors and backtraces.

use core::alloc::Layout;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::env::VarError;
use std::error::Error;
use std::ffi::{IntoStringError, NulError};
use std::io;
use std::string::FromUtf8Error;
use std::sync::{PoisonError, TryLockError};

use memory_report::SkipReason;

use crate::measure::impls::opaque::opaque;
use crate::measure::impls::plain::plain;
use crate::measure::impls::wrapper::{parts, variants};
use crate::measure::malloc_size_of::MallocSizeOf;
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

plain!([] io::ErrorKind, [] std::time::SystemTimeError, [] std::path::StripPrefixError);
plain!(
    [] core::num::TryFromIntError, [] core::array::TryFromSliceError, [] core::str::ParseBoolError,
    [] core::char::ParseCharError, [] core::char::CharTryFromError, [] core::net::AddrParseError,
    [] core::cell::BorrowError, [] core::cell::BorrowMutError, [] std::collections::TryReserveError,
);
variants!(VarError, [], VarError::NotUnicode; VarError::NotPresent);
parts!(PoisonError<T>, [T], self, self.get_ref());

/// The box that std puts around a custom error and its kind.
#[allow(dead_code, reason = "only its layout is used")]
struct CustomError {
    kind: io::ErrorKind,
    error: Box<dyn Error + Send + Sync>,
}

/// An error of the system or of std owns no heap. A custom error is a box inside a box. The walk has
/// access only to the inner box, and computes the size of the outer box. It records the heap of the inner error as
/// skipped.
impl MallocSizeOf for io::Error {
    #[allow(unsafe_code, reason = "passes the start of the error's block to `ops.block`")]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        let Some(error) = self.get_ref() else { return 0 };
        let outer = ops.enclosing(core::ptr::null::<CustomError>(), Layout::new::<CustomError>());
        // SAFETY: std keeps a custom error in the `Box<dyn Error + Send + Sync>` that `into_inner` returns. So
        // `error` is the start of a block with the value's layout.
        let own = unsafe { ops.block(error, Layout::for_value(error)) };
        outer + own + ops.contents(|ops| error.size_of_excluding_this(ops))
    }
}

variants!(TryLockError<T>, [T], TryLockError::Poisoned; TryLockError::WouldBlock);

/// The error gives access to its bytes, but not to its capacity. So the walk counts only the length of the bytes.
impl MallocSizeOf for FromUtf8Error {
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        ops.enclosing(self.as_bytes().as_ptr(), Layout::for_value(self.as_bytes()))
    }
}

opaque!([] NulError, [] IntoStringError);

impl MallocSizeOf for Backtrace {
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        match self.status() {
            BacktraceStatus::Captured => ops.skip::<Self>(SkipReason::Opaque),
            _ => 0,
        }
    }
}
