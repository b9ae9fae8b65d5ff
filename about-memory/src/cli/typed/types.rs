//! `about-memory types`.

use std::cmp::Reverse;

use clap::Args;
use serde_json::json;
use typed_heap::TypedHeap;

use super::super::Failure;
use super::{Heap, Table, about, counted, left_out, print, size};

pub(crate) const EXAMPLES: &str = about!(
    "\
Examples:
  about-memory types 1234
  about-memory types scan.json.gz
  about-memory types scan.json.gz --core core.1234 --limit 50
  about-memory types scan.json.gz --json"
);

/// Disagreements to show.
const DISAGREEMENTS: usize = 3;

#[derive(Args)]
pub(crate) struct Types {
    #[command(flatten)]
    heap: Heap,
}

impl Types {
    pub(crate) fn run(self) -> Result<(), Failure> {
        self.heap.with(|heap, _| print(&if self.heap.json { self.json(heap) } else { self.text(heap) }))
    }

    fn text(&self, heap: &TypedHeap<'_>) -> String {
        let limit = self.heap.rows();
        let census = heap.census();
        let percent = 100.0 * census.typed_bytes as f64 / census.bytes.max(1) as f64;
        let rows = census.rows.iter().take(limit).map(|row| (row.bytes, row.blocks, row.name.clone()));
        let table = Table::new(rows, census.bytes);
        let mut text = format!(
            "{} in {}; {percent:.2}% has a type\n\n{}{}",
            size(census.bytes),
            counted(census.blocks),
            table.text(),
            left_out(census.rows.len(), limit)
        );
        let agreement = heap.agreement();
        let compared = agreement.agree + agreement.disagree;
        if compared == 0 {
            return text;
        }
        text += &format!(
            "\nOf {compared} pointers {} say the same type as the stack that allocated their block.\n",
            agreement.agree
        );
        let mut others: Vec<_> = agreement.disagreements().collect();
        others.sort_by_key(|(stack, owner, pointers)| (Reverse(*pointers), *stack, *owner));
        for (stack, owner, pointers) in others.into_iter().take(DISAGREEMENTS) {
            let (stack, owner) = (about_memory::escape(stack), about_memory::escape(owner));
            text += &format!("  {pointers} say {owner}, and the stack says {stack}\n");
        }
        text
    }

    fn json(&self, heap: &TypedHeap<'_>) -> String {
        let census = heap.census();
        let agreement = heap.agreement();
        let row = |row: &typed_heap::TypeRow| json!({"type": row.name, "blocks": row.blocks, "bytes": row.bytes, "byOwner": row.by_owner});
        let rows: Vec<_> = census.rows.iter().take(self.heap.rows()).map(row).collect();
        let disagreements: Vec<_> = agreement
            .disagreements()
            .map(|(stack, owner, pointers)| json!({"stack": stack, "owner": owner, "pointers": pointers}))
            .collect();
        let all = json!({
            "blocks": census.blocks,
            "bytes": census.bytes,
            "typedBlocks": census.typed_blocks,
            "typedBytes": census.typed_bytes,
            "wrongSizes": census.misfits,
            "agree": agreement.agree,
            "disagree": agreement.disagree,
            "disagreements": disagreements,
            "types": rows,
        });
        format!("{all:#}\n")
    }
}
