//! The stack walker against other unwinders. A test binary of its own: it changes signal handlers, and
//! loads and unloads libraries.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

mod c_library;
mod check;
mod damaged;
mod libraries;
mod random_stacks;
mod rows;
mod signals;
mod single_step;
mod threads;
