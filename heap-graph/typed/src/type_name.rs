//! Names types of blocks as a programmer writes them.

use dmd_analyze::TypeVerdict;

use crate::debug_info::TypeId;
use crate::infer::TypedHeap;
use crate::walk::TypedContents;

/// All data that determine the name of a block's type. Millions of blocks share a few hundred different values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NameBasis {
    contents: Option<(ContentsForm, TypeId)>,
    /// The number of the verdict about the stack.
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
    /// A value behind a prefix of this many bytes.
    Prefixed(u64),
    Chunk,
}

/// The name for a type that has no name in debug information, such as an anonymous struct of C.
fn unnamed() -> String {
    "a type without a name".to_owned()
}

impl TypedHeap<'_> {
    /// The name of a block's type, as a programmer writes it: `[Stmt]`, `ArcInner<Session>`, `table (u32, Job)`. For
    /// a block of unknown type, `in f`, with the function that allocated it.
    pub fn type_name(&self, block: usize) -> String {
        let info = self.walk.info();
        match (self.contents[block], self.stacks.verdict(self.blocks[block].stack)) {
            (Some(contents), verdict) => {
                let text = contents.text(info);
                // A string has the same contents as a vector of bytes. An owner or the stack shows that it is text.
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

    /// The data that determine the name of the block's type. Equal data mean equal names.
    pub(crate) fn basis(&self, block: usize) -> NameBasis {
        let form = |contents| match contents {
            TypedContents::One(_) | TypedContents::Tail { .. } => ContentsForm::One,
            TypedContents::Slice { .. } => ContentsForm::Slice,
            TypedContents::Table { .. } => ContentsForm::Table,
            TypedContents::Headed { .. } => ContentsForm::Headed,
            TypedContents::Task { .. } => ContentsForm::Task,
            TypedContents::Prefixed { before, .. } => ContentsForm::Prefixed(before),
            TypedContents::Chunk { .. }
            | TypedContents::HeadedChunk { .. }
            | TypedContents::FlatChunk { .. } => ContentsForm::Chunk,
        };
        let contents = self.contents[block].map(|contents| (form(contents), contents.element()));
        let verdict = self.stacks.number(self.blocks[block].stack);
        NameBasis { contents, verdict, is_text: self.text[block].is_text() }
    }
}
