//! An analysis in other forms: tables, JSON, folded stacks and flame graphs.

mod by_text;
mod flame;
mod folded;
mod json;

pub use by_text::ByText;
pub use flame::{FlameFrame, FlameGraph};
pub use folded::Folded;
pub use json::Json;
