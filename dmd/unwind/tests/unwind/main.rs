//! Compares the stack walker with other unwinders. This is a separate test binary: it changes signal handlers, loads
//! and unloads libraries, and walks the stack at each allocation.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod c_library;
mod callers;
mod check;
mod damaged;
mod hooked;
mod incremental;
mod libraries;
mod random_stacks;
mod rows;
mod signals;
mod single_step;
mod threads;

#[global_allocator]
static ALLOCATOR: hooked::Walking = hooked::Walking;
