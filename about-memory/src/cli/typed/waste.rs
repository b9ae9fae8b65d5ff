//! `about-memory waste`.

use clap::Args;
use serde_json::json;
use typed_heap::{Waste as Facts, WasteRow};

use super::super::Failure;
use super::{Heap, Table, about, counted, left_out, print, size};

pub(crate) const EXAMPLES: &str = about!(
    "\
Examples:
  about-memory waste 1234
  about-memory waste scan.json.gz --limit 50
  about-memory waste scan.json.gz --json

Waste is capacity beyond the length of vectors, deques and strings, empty buckets of hash tables, and empty places in the
nodes of B-trees."
);

#[derive(Args)]
pub(crate) struct Waste {
    #[command(flatten)]
    heap: Heap,
}

impl Waste {
    pub(crate) fn run(self) -> Result<(), Failure> {
        self.heap.with(|heap, memory, _| {
            let waste = heap.waste(memory);
            let all: u64 = heap.blocks().iter().map(|block| block.usable).sum();
            print(&if self.heap.json { self.json(&waste, all) } else { self.text(&waste, all) })
        })
    }

    fn text(&self, waste: &Facts, all: u64) -> String {
        let limit = self.heap.rows();
        let row = |row: &WasteRow| {
            let of = format!("{}: {} of {}", row.name, row.unused.text(), size(row.bytes));
            (row.unused_bytes, row.blocks, of)
        };
        let table = Table::new(waste.rows.iter().take(limit).map(row), all);
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
                "{} more in {} of vectors and strings have a length that only a stack or a static knows.\n",
                size(waste.unknown_bytes),
                counted(waste.unknown_blocks)
            );
        }
        text + &format!("The allocator adds {} to what the program requested.\n", size(waste.slop))
    }

    fn json(&self, waste: &Facts, all: u64) -> String {
        let row = |row: &WasteRow| {
            json!({
                "type": row.name,
                "waste": row.unused.text(),
                "blocks": row.blocks,
                "bytes": row.bytes,
                "unusedBytes": row.unused_bytes,
            })
        };
        let rows: Vec<_> = waste.rows.iter().take(self.heap.rows()).map(row).collect();
        let all = json!({
            "bytes": all,
            "unusedBytes": waste.unused_bytes,
            "unknownBlocks": waste.unknown_blocks,
            "unknownBytes": waste.unknown_bytes,
            "slop": waste.slop,
            "types": rows,
        });
        format!("{all:#}\n")
    }
}
