//! The code in docs/, which rustdoc compiles and runs as examples of this crate.

#[doc = include_str!("../../docs/src/measuring.md")]
mod measuring {}

#[doc = include_str!("../../docs/src/foreign-types.md")]
mod foreign_types {}

#[doc = include_str!("../../docs/src/reporters.md")]
mod reporters {}

#[doc = include_str!("../../docs/src/tags.md")]
mod tags {}

#[doc = include_str!("../../docs/src/reports.md")]
mod reports {}

#[doc = include_str!("../../docs/src/dmd.md")]
mod dmd {}

#[doc = include_str!("../../docs/src/recordings.md")]
mod recordings {}

#[doc = include_str!("../../docs/src/production.md")]
mod production {}

#[doc = include_str!("../../docs/src/heap-graphs.md")]
mod heap_graphs {}

#[doc = include_str!("../../docs/src/endpoints.md")]
mod endpoints {}

#[doc = include_str!("../../docs/src/budgets.md")]
mod budgets {}

#[doc = include_str!("../../docs/src/watching.md")]
mod watching {}

#[doc = include_str!("../../docs/src/heap-tests.md")]
mod heap_tests {}
