//! An analysis in other forms: tables, JSON, folded stacks and flame graphs.

mod by_text;
mod flame;
mod folded;
mod json;

pub use by_text::TablesText;
pub use flame::{FlameFrame, FlameGraph};
pub use folded::FoldedText;
pub use json::AnalysisJson;
