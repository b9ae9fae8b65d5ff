//! Types of blocks as a programmer writes them.

use dmd_analyze::short_type_name;

use crate::debug_info::{DebugInfo, TypeId};
use crate::infer::{TypedHeap, element};
use crate::walk::Contents;

/// What the name of a block's type follows from. Millions of blocks have a few hundred of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Basis {
    contents: Option<(Form, TypeId)>,
    /// The number of the stack's verdict.
    verdict: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Form {
    One,
    Slice,
    Table,
}

impl TypedHeap<'_> {
    /// The type of a block, as a programmer writes it: `[Stmt]`, `ArcInner<Session>`, `table (u32, Job)`, or `in f` for
    /// the function that allocated a block of unknown type.
    pub fn type_name(&self, block: usize) -> String {
        let info = self.walk.info();
        match (self.contents[block], self.stacks.verdict(self.blocks[block].stack)) {
            (Some(contents), verdict) => {
                let text = text(info, contents);
                // The bytes of a string are those of a vector.
                let named = verdict.and_then(|verdict| verdict.type_name());
                match named {
                    Some(named) if text == "[u8]" && named.starts_with("str") => "str".to_owned(),
                    _ => text,
                }
            }
            (None, Some(verdict)) => verdict.type_name().unwrap_or_else(|| verdict.to_string()),
            (None, None) => "in an unknown function".to_owned(),
        }
    }

    /// Blocks of the same basis have the same type.
    pub(crate) fn basis(&self, block: usize) -> Basis {
        let form = |contents| match contents {
            Contents::One(_) | Contents::Tail { .. } => Form::One,
            Contents::Slice { .. } => Form::Slice,
            Contents::Table { .. } => Form::Table,
        };
        let contents = self.contents[block].map(|contents| (form(contents), element(contents)));
        Basis { contents, verdict: self.stacks.number(self.blocks[block].stack) }
    }
}

/// The contents as a programmer writes them.
pub(crate) fn text(info: &DebugInfo, contents: Contents) -> String {
    let name = |of| short_type_name(info.name(of));
    match contents {
        Contents::One(of) | Contents::Tail { of, .. } => name(of),
        Contents::Slice { element, .. } => format!("[{}]", name(element)),
        Contents::Table { entry } => format!("table {}", name(entry)),
    }
}
