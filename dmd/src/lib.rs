//! DMD, the dark matter detector: which stacks allocated what no memory reporter reports.
#![deny(unsafe_code)]

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#[allow(unsafe_code, reason = "reads registers, the stack and the loader's tables")]
#[doc(hidden)]
pub mod unwind;
