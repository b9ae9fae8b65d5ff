//! `about-memory heap waste`.

use clap::Args;
use serde_json::json;
use typed_heap::{DuplicateRow, Duplicates, HeapWaste, WasteKind, WasteRow};

use super::super::Failure;
use super::{AmountTable, HeapInput, NO_FIELDS, about, counted, left_out, print, size, sums};

pub(crate) const EXAMPLES: &str = about!(
    "\
Examples:
  about-memory heap waste 1234
  about-memory heap waste scan.json.gz --limit 50
  about-memory heap waste scan.json.gz --duplicates   # equal strings
  about-memory heap waste scan.json.gz --json

Waste is capacity beyond the length of vectors, deques and strings, empty buckets of hash tables, empty places in the nodes
of B-trees, the unused part of an arena's chunks, the buffers in them that vectors have outgrown, and the bytes of enums
and async functions that only variants larger than the current variant use. A row names the field that holds the blocks."
);

#[derive(Args)]
pub(crate) struct WasteCommand {
    /// Find equal strings and equal slices of bytes. Only this option reads their contents; it does not print them.
    #[arg(long)]
    duplicates: bool,
    #[command(flatten)]
    heap: HeapInput,
}

impl WasteCommand {
    pub(crate) fn run(self) -> Result<(), Failure> {
        self.heap.with(|heap, memory, _| {
            let all: u64 = heap.blocks().iter().map(|block| block.usable).sum();
            if self.duplicates {
                let found = heap.duplicates(memory);
                return print(&if self.heap.json {
                    self.copies_json(&found)
                } else {
                    self.copies(&found, all)
                });
            }
            let waste = heap.waste(memory);
            let is_known = heap.knows_fields();
            print(&match (self.heap.json, is_known) {
                (true, _) => self.json(&waste, all, is_known),
                (false, true) => self.text(&waste, all),
                (false, false) => {
                    format!("The unused memory of {} is {NO_FIELDS}\n", size(all)) + &slop(&waste)
                }
            })
        })
    }

    fn copies(&self, found: &Duplicates, all: u64) -> String {
        let limit = self.heap.rows();
        let row = |row: &DuplicateRow| {
            let different = if row.different == 1 { "text" } else { "different texts" };
            let held = format!(
                "{} held by {}: {} {different}, one of them at 0x{:x}",
                row.name, row.held_by, row.different, row.example
            );
            (row.bytes, row.blocks, held)
        };
        let (bytes, blocks) = (size(found.bytes), counted(found.blocks));
        let mut text = format!("{bytes} in {blocks} are copies of the contents of another block\n");
        if !found.rows.is_empty() {
            let table = AmountTable::new(found.rows.iter().take(limit).map(row), all);
            text += &format!("\n{}{}", table.text(), left_out(found.rows.len(), limit));
        }
        if found.unknown_blocks > 0 {
            text += &format!(
                "\n{} of strings and bytes cannot be compared: the length is in an owner outside of the heap, or the \
                 dump lacks the last bytes. Use a running process or --core FILE.\n",
                counted(found.unknown_blocks)
            );
        }
        text
    }

    fn copies_json(&self, found: &Duplicates) -> String {
        let row = |row: &DuplicateRow| {
            json!({
                "type": row.name,
                "heldBy": row.held_by,
                "blocks": row.blocks,
                "bytes": row.bytes,
                "different": row.different,
                "example": format!("0x{:x}", row.example),
            })
        };
        let rows: Vec<_> = found.rows.iter().take(self.heap.rows()).map(row).collect();
        let rest = found.rows.iter().skip(self.heap.rows());
        let (count, blocks, bytes) = sums(rest.map(|row| (row.blocks, row.bytes.into())));
        let all = json!({
            "version": 1,
            "rest": { "rows": count, "blocks": blocks, "bytes": bytes },
            "blocks": found.blocks,
            "bytes": found.bytes,
            "unknownBlocks": found.unknown_blocks,
            "duplicates": rows,
        });
        format!("{all:#}\n")
    }

    fn text(&self, waste: &HeapWaste, all: u64) -> String {
        let limit = self.heap.rows();
        let row = |row: &WasteRow| (row.unused_bytes, row.blocks, unused(row));
        let table = AmountTable::new(waste.rows.iter().take(limit).map(row), all);
        let mut text = format!(
            "{} of {} are not used ({:.2}%)\n\n{}{}\n",
            size(waste.unused_bytes),
            size(all),
            100.0 * waste.unused_bytes as f64 / all.max(1) as f64,
            table.text(),
            left_out(waste.rows.len(), limit)
        );
        if waste.unknown_blocks > 0 {
            text += &format!(
                "Unknown: {} in {} of vectors, strings and chunks whose length only a stack or a static contains.\n",
                size(waste.unknown_bytes),
                counted(waste.unknown_blocks)
            );
        }
        text + &slop(waste)
    }

    fn json(&self, waste: &HeapWaste, all: u64, is_known: bool) -> String {
        let row = |row: &WasteRow| {
            json!({
                "type": row.name,
                "heldBy": row.held_by,
                "waste": row.unused.text(),
                "values": row.values,
                "blocks": row.blocks,
                "bytes": row.bytes,
                "unusedBytes": row.unused_bytes,
                "places": row.places,
                "fullPlaces": row.full_places,
            })
        };
        let rows: Vec<_> = waste.rows.iter().take(self.heap.rows()).map(row).collect();
        let rest = || waste.rows.iter().skip(self.heap.rows());
        let (count, blocks, bytes) = sums(rest().map(|row| (row.blocks, row.bytes.into())));
        let (_, _, unused) = sums(rest().map(|row| (row.blocks, row.unused_bytes.into())));
        let all = json!({
            "version": 1,
            "rest": { "rows": count, "blocks": blocks, "bytes": bytes, "unusedBytes": unused },
            "bytes": all,
            "unusedBytes": is_known.then_some(waste.unused_bytes),
            "unknownBlocks": waste.unknown_blocks,
            "unknownBytes": waste.unknown_bytes,
            "slop": waste.slop,
            "types": rows,
        });
        format!("{all:#}\n")
    }
}

fn slop(waste: &HeapWaste) -> String {
    format!("The allocator adds {} to the requested bytes.\n", size(waste.slop))
}

/// Returns the text of a row: the field, the type, the kind of waste, all bytes of the blocks or values, and how full
/// they are.
pub(crate) fn unused(row: &WasteRow) -> String {
    unused_parts(row).concat()
}

/// Returns the two parts of a row's text: the field with the type, and the rest.
pub(crate) fn unused_parts(row: &WasteRow) -> [String; 2] {
    let WasteRow { name, held_by, unused, values, .. } = row;
    let held_by = held_by.as_ref().map(|field| format!("{field}: ")).unwrap_or_default();
    // Unused capacity behind a `str` belongs to a `String`.
    let name = if (name.as_str(), *unused) == ("str", WasteKind::Capacity) { "String" } else { name };
    let values = match unused {
        WasteKind::Variants => format!(", {values} {}", if *values == 1 { "value" } else { "values" }),
        _ => String::new(),
    };
    let full = row.percent_full().map(|percent| format!(", {percent}% full")).unwrap_or_default();
    [format!("{held_by}{name}"), format!(": {}{values} of {}{full}", unused.text(), size(row.bytes))]
}
