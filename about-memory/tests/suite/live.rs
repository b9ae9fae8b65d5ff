//! Running processes: this test program, started again.

mod asking;
mod commands;
mod herd;
mod served;
mod snapshots;
mod top;
mod victim;
mod watching;
