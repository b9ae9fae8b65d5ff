//! Types of blocks as a programmer writes them.

use dmd_analyze::TypeVerdict;

use crate::debug_info::TypeId;
use crate::infer::TypedHeap;
use crate::walk::TypedContents;

/// Everything that the name of a block's type depends on. Millions of blocks share a few hundred of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NameBasis {
    contents: Option<(ContentsForm, TypeId)>,
    /// The number of the stack's verdict.
    verdict: Option<usize>,
    is_text: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum ContentsForm {
    One,
    Slice,
    Table,
    Headed,
    Task,
    Chunk,
}

/// A type of another language that has no name.
fn unnamed() -> String {
    "a type without a name".to_owned()
}

impl TypedHeap<'_> {
    /// The type of a block, as a programmer writes it: `[Stmt]`, `ArcInner<Session>`, `table (u32, Job)`, or `in f` for
    /// the function that allocated a block of unknown type.
    pub fn type_name(&self, block: usize) -> String {
        let info = self.walk.info();
        match (self.contents[block], self.stacks.verdict(self.blocks[block].stack)) {
            (Some(contents), verdict) => {
                let text = contents.text(info);
                // The bytes of a string are those of a vector.
                let named = verdict.and_then(|verdict| verdict.type_name());
                let is_text = || {
                    self.text[block].is_text() || named.as_ref().is_some_and(|named| named.starts_with("str"))
                };
                match &*text {
                    "[u8]" if is_text() => "str".to_owned(),
                    "" | "[]" => {
                        named.or_else(|| verdict.map(TypeVerdict::to_string)).unwrap_or_else(unnamed)
                    }
                    _ => text,
                }
            }
            (None, Some(verdict)) => verdict.type_name().unwrap_or_else(|| verdict.to_string()),
            (None, None) => "in an unknown function".to_owned(),
        }
    }

    /// Blocks of the same basis have the same type.
    pub(crate) fn basis(&self, block: usize) -> NameBasis {
        let form = |contents| match contents {
            TypedContents::One(_) | TypedContents::Tail { .. } => ContentsForm::One,
            TypedContents::Slice { .. } => ContentsForm::Slice,
            TypedContents::Table { .. } => ContentsForm::Table,
            TypedContents::Headed { .. } => ContentsForm::Headed,
            TypedContents::Task { .. } => ContentsForm::Task,
            TypedContents::Chunk { .. } => ContentsForm::Chunk,
        };
        let contents = self.contents[block].map(|contents| (form(contents), contents.element()));
        let verdict = self.stacks.number(self.blocks[block].stack);
        NameBasis { contents, verdict, is_text: self.text[block].is_text() }
    }
}
