//! Whole processes under DMD, by either door, and what it says of them.

mod c_programs;
mod doors;
mod exports;
mod options;
mod processes;
mod reporting;
mod sampler;
mod smoke;
mod support;
