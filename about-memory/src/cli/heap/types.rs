//! `about-memory heap types`.

use std::cmp::Reverse;

use clap::{Args, ValueEnum};
use heap_graph::dominators::{FieldSizes, sizes_by_field};
use heap_graph::{DominatorTree, NodeIndex};
use serde_json::json;
use typed_heap::{ROOTS, TypedHeap};

use super::super::Failure;
use super::super::dump_limits::DumpLimits;
use super::super::input::InputArgument;
use super::super::symbols::SymbolSearch;
use super::{
    AmountTable, HeapInput, NO_FIELDS, TypedHeapReader, about, counted, left_out, print, size, sums,
};

pub(crate) const EXAMPLES: &str = about!(
    "\
Examples:
  about-memory heap types 1234
  about-memory heap types scan.json.gz
  about-memory heap types scan.json.gz --core core.1234 --limit 50
  about-memory heap types scan.json.gz --by field     # the memory that each field keeps alive
  about-memory heap types scan.json.gz --json"
);

/// At most this many disagreements are shown.
const DISAGREEMENTS: usize = 3;

/// Returns the name of a field for texts. For a field of the graph's root, it is the field's own name, without a type.
/// A row without a field has the blocks that several other rows hold together.
pub(crate) fn name(field: &FieldSizes<'_>) -> String {
    match &field.field {
        _ if field.holder.as_str() != Some(ROOTS) => field.name(),
        Some(name) => name.to_string(),
        None => "held by several rows of this table together".to_owned(),
    }
}

/// The rows of the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum TypeGrouping {
    /// The blocks of each type
    #[default]
    Type,
    /// The blocks that each field of each type keeps alive
    Field,
}

#[derive(Args)]
pub(crate) struct TypesCommand {
    /// Group the blocks by this.
    #[arg(long, value_enum, default_value_t, value_name = "KEY")]
    by: TypeGrouping,
    #[command(flatten)]
    heap: HeapInput,
}

impl TypesCommand {
    /// Returns the question that `show` asks about a core file.
    pub(in super::super) fn first_screen(source: InputArgument, max_bytes: u64) -> Self {
        let reading = TypedHeapReader::new(SymbolSearch::default(), DumpLimits::with_max_bytes(max_bytes));
        Self { by: TypeGrouping::Type, heap: HeapInput { source, limit: None, json: false, reading } }
    }

    pub(crate) fn run(self) -> Result<(), Failure> {
        self.heap.with(|heap, _, dump| match self.by {
            TypeGrouping::Type => print(&if self.heap.json { self.json(heap) } else { self.text(heap) }),
            TypeGrouping::Field => {
                let graph = heap.graph(dump).map_err(|error| self.heap.failure(error.into()))?;
                let tree = DominatorTree::new(&graph);
                let fields = sizes_by_field(&tree);
                let all = tree.retained_size(NodeIndex::ROOT).unwrap_or_default();
                print(&match (self.heap.json, heap.knows_fields()) {
                    (true, _) => self.fields_json(&fields, all),
                    (false, true) => self.fields(&fields, all),
                    (false, false) => format!("The fields are {NO_FIELDS}\n"),
                })
            }
        })
    }

    fn fields(&self, fields: &[FieldSizes<'_>], all: u128) -> String {
        let limit = self.heap.rows();
        let amount = |amount: u128| u64::try_from(amount).unwrap_or(u64::MAX);
        let rows = fields.iter().take(limit);
        let rows = rows.map(|field| (amount(field.retained_size), field.count, name(field)));
        format!(
            "{} in {}; the memory that each field keeps alive, directly or indirectly\n\n{}{}",
            size(amount(all)),
            counted(fields.iter().map(|field| field.count).sum()),
            AmountTable::new(rows, amount(all)).text(),
            left_out(fields.len(), limit)
        )
    }

    fn fields_json(&self, fields: &[FieldSizes<'_>], all: u128) -> String {
        let row = |field: &FieldSizes<'_>| {
            json!({
                "type": field.holder.to_string(),
                "field": field.field.as_ref().map(ToString::to_string),
                "blocks": field.count,
                "bytes": field.shallow_size,
                "retainedBytes": field.retained_size,
            })
        };
        let rows: Vec<_> = fields.iter().take(self.heap.rows()).map(row).collect();
        let rest = fields.iter().skip(self.heap.rows());
        let (count, blocks, bytes) = sums(rest.map(|field| (field.count, field.shallow_size)));
        let rest = json!({ "rows": count, "blocks": blocks, "bytes": bytes });
        format!("{:#}\n", json!({ "version": 1, "bytes": all, "fields": rows, "rest": rest }))
    }

    fn text(&self, heap: &TypedHeap<'_>) -> String {
        let limit = self.heap.rows();
        let census = heap.census();
        let percent = 100.0 * census.typed_bytes as f64 / census.bytes.max(1) as f64;
        let rows = census.rows.iter().take(limit).map(|row| (row.bytes, row.blocks, row.name.clone()));
        let table = AmountTable::new(rows, census.bytes);
        let mut text = format!(
            "{} in {}; {percent:.2}% has a type\n\n{}{}",
            size(census.bytes),
            counted(census.blocks),
            table.text(),
            left_out(census.rows.len(), limit)
        );
        let agreement = heap.agreement();
        if agreement.without_layout > 0 {
            text += &format!(
                "\nWithout a layout: {}; a word of these blocks counts as a pointer if it is the start address of a block.\n",
                counted(agreement.without_layout)
            );
        }
        let compared = agreement.agree + agreement.disagree;
        if compared + agreement.same_layout == 0 {
            return text;
        }
        text += &format!(
            "\n{} of {compared} pointers agree with the allocation stack about the type of their block.\n",
            agreement.agree
        );
        text += &pairs(agreement.disagreements());
        if agreement.outweighed > 0 {
            text += &format!(
                "{} pointers that contradict a stack are overruled: their blocks keep the types of the stacks.\n",
                agreement.outweighed
            );
        }
        if agreement.same_layout > 0 {
            text += &format!(
                "{} more pointers contradict a stack because the compiler merged functions; the calling functions confirm the types of these pointers.\n",
                agreement.same_layout
            );
            text += &pairs(agreement.merged());
        }
        text
    }

    fn json(&self, heap: &TypedHeap<'_>) -> String {
        let census = heap.census();
        let agreement = heap.agreement();
        let row = |row: &typed_heap::TypeCensusRow| json!({"type": row.name, "blocks": row.blocks, "bytes": row.bytes, "byOwner": row.by_owner});
        let rows: Vec<_> = census.rows.iter().take(self.heap.rows()).map(row).collect();
        let pair = |(stack, owner, pointers)| json!({"stack": stack, "owner": owner, "pointers": pointers});
        let disagreements: Vec<_> = agreement.disagreements().map(pair).collect();
        let merged: Vec<_> = agreement.merged().map(pair).collect();
        let rest = census.rows.iter().skip(self.heap.rows());
        let (count, blocks, bytes) = sums(rest.map(|row| (row.blocks, row.bytes.into())));
        let all = json!({
            "version": 1,
            "rest": { "rows": count, "blocks": blocks, "bytes": bytes },
            "blocks": census.blocks,
            "bytes": census.bytes,
            "typedBlocks": census.typed_blocks,
            "typedBytes": census.typed_bytes,
            "wrongSizes": census.misfits,
            "agree": agreement.agree,
            "disagree": agreement.disagree,
            "disagreements": disagreements,
            "sameLayout": agreement.same_layout,
            "merged": merged,
            "views": agreement.views,
            "ownerOnly": agreement.owner_only,
            "ownersDisagree": agreement.owners_disagree,
            "outweighed": agreement.outweighed,
            "withoutLayout": agreement.without_layout,
            "types": rows,
        });
        format!("{all:#}\n")
    }
}

/// Sorts pairs of different types, the pair with the most pointers first. A pair consists of the type from the
/// allocation stack, the type from pointers, and the number of these pointers.
pub(super) fn sorted<'a>(all: impl Iterator<Item = (&'a str, &'a str, u64)>) -> Vec<(&'a str, &'a str, u64)> {
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(|(stack, owner, pointers)| (Reverse(*pointers), *stack, *owner));
    all
}

/// Returns a text with the most frequent pairs.
fn pairs<'a>(all: impl Iterator<Item = (&'a str, &'a str, u64)>) -> String {
    let all = sorted(all);
    let mut text = String::new();
    let more = all.len().saturating_sub(DISAGREEMENTS);
    for (stack, owner, pointers) in all.into_iter().take(DISAGREEMENTS) {
        let (stack, owner) = (about_memory::escape(stack), about_memory::escape(owner));
        text += &format!("  {pointers} pointers name {owner}; the stack names {stack}\n");
    }
    if more > 0 {
        text += &format!("  ... and {more} more; see --json\n");
    }
    text
}
