//! The texts of Firefox's tools, to the byte: `dmd.py`, its ancestor of 2013, and `block_analyzer.py`.

mod clamp;
mod classic;
mod referrers;
mod text;

pub use clamp::{ClampStats, clamp};
pub use classic::ClassicText;
pub use referrers::{BlockOptions, BlockText};
pub use text::FirefoxText;
