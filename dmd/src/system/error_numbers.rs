//! The system's error numbers that the functions for C return.

#[cfg(unix)]
mod numbers {
    pub(crate) use libc::{
        EBUSY as BUSY, ECANCELED as CANCELED, EINVAL as INVALID, EIO as IO, ENOMEM as NO_MEMORY,
    };
}

#[cfg(windows)]
mod numbers {
    use core::ffi::c_int;

    use windows_sys::Win32::Foundation;

    pub(crate) const BUSY: c_int = Foundation::ERROR_BUSY as c_int;
    pub(crate) const CANCELED: c_int = Foundation::ERROR_CANCELLED as c_int;
    pub(crate) const INVALID: c_int = Foundation::ERROR_INVALID_PARAMETER as c_int;
    pub(crate) const IO: c_int = Foundation::ERROR_IO_DEVICE as c_int;
    pub(crate) const NO_MEMORY: c_int = Foundation::ERROR_NOT_ENOUGH_MEMORY as c_int;
}

pub(crate) use numbers::{BUSY, CANCELED, INVALID, IO, NO_MEMORY};
