//! Tests with running processes: this test program starts itself again.

mod asking;
mod commands;
mod herd;
mod served;
mod snapshots;
mod top;
mod victim;
mod watching;
