//! Runs whole processes under DMD with each hook, and checks DMD's dumps and messages.

#![allow(clippy::unwrap_used, reason = "a test")]

#[cfg(not(feature = "portable-engine"))]
mod advice;
#[cfg(target_os = "linux")]
mod black_box;
mod both_hooks;
mod c_programs;
mod compilations;
mod dark;
mod ending_signals;
#[cfg(not(feature = "portable-engine"))]
mod engine_threads;
mod engine_versions;
mod exits;
mod exports;
mod format;
mod handlers;
mod hooks;
mod live;
mod live_blocks;
mod options;
#[cfg(not(feature = "portable-engine"))]
mod outside;
mod overlapping;
mod peak;
#[cfg(feature = "portable-engine")]
mod portable_engine;
#[cfg(not(feature = "portable-engine"))]
mod probes;
mod processes;
mod real_programs;
mod recordings;
mod reporting;
#[cfg(not(feature = "portable-engine"))]
mod resident;
mod sampler;
mod samples;
mod smoke;
mod stacks;
#[cfg(not(feature = "portable-engine"))]
mod static_allocators;
mod support;
mod tracking;
mod watching;
