//! The forms of instructions that refer to a function: how they are recognized, and how they are written anew. Pure
//! functions over bytes, for each processor, so that tests of both run on any machine.

pub mod aarch64;
pub mod x86_64;
