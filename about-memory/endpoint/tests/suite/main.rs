//! Tests of the endpoint in a program with reporters, whose allocator DMD records.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod accepted;
mod bounds;
mod dashboard;
mod differences;
mod paths;
mod program;
mod pushes;
mod routes;
