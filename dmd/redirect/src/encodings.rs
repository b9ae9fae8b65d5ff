//! Recognizes and rewrites instructions that refer to a function. Each processor has a module of pure functions over
//! bytes, so that the tests of both modules run on any machine.

pub mod aarch64;
pub mod x86_64;
