//! `about-memory heap why`.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use clap::Args;
use serde_json::json;
use typed_heap::{ChainLink, HolderRow, TypedHeap};

use super::super::Failure;
use super::type_spelling::TypeSpelling;
use super::{AmountTable, HeapInput, about, counted, left_out, print, size, sums};

pub(crate) const EXAMPLES: &str = about!(
    "\
Examples:
  about-memory heap why 1234 '[my_crate::Session]'
  about-memory heap why 1234 '[Session]'
  about-memory heap why scan.json.gz 'table (u32, String)'
  about-memory heap why scan.json.gz 0x7f0000001000
  about-memory heap why scan.json.gz str --json

Types are spelled as `about-memory heap types` shows them, or shorter: `[Session]` for `[my_crate::Session]`."
);

/// An error names at most this many types.
const SIMILAR: usize = 5;

#[derive(Args)]
pub(crate) struct WhyCommand {
    #[command(flatten)]
    heap: HeapInput,
    /// A type, or the address of a block, such as `0x7f0000001000`.
    #[arg(value_name = "TYPE|ADDRESS")]
    what: String,
}

impl WhyCommand {
    pub(crate) fn run(self) -> Result<(), Failure> {
        self.heap.with(|heap, _, _| {
            let blocks = self.blocks(heap)?;
            let why = heap.holding_chains();
            let holders = why.holders(blocks.iter().copied());
            // The chain is shown for the largest block only.
            let largest = blocks.iter().copied().max_by_key(|block| heap.blocks()[*block].usable);
            let chain = largest.map(|block| why.chain(block)).unwrap_or_default();
            let of_largest = largest.map_or(0, |block| heap.blocks()[block].address);
            let all = WhyAnswer { heap, blocks, holders, chain, of_largest };
            print(&if self.heap.json { self.json(&all) } else { self.text(&all) })
        })
    }

    fn blocks(&self, heap: &TypedHeap<'_>) -> Result<Vec<usize>, Failure> {
        let all = 0..heap.blocks().len();
        if let Some(digits) = self.what.strip_prefix("0x") {
            let address = u64::from_str_radix(digits, 16)
                .map_err(|_| Failure::Usage(format!("{}: not an address of 64 bits", self.what)))?;
            let holds = |index: &usize| {
                let block = &heap.blocks()[*index];
                (block.address..block.address.saturating_add(block.usable.max(1))).contains(&address)
            };
            let found: Vec<usize> = all.filter(holds).collect();
            return match found.is_empty() {
                true => Err(self.heap.failure(anyhow::anyhow!("no block has the address {}", self.what))),
                false => Ok(found),
            };
        }
        let mut by_name: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        all.for_each(|block| by_name.entry(heap.type_name(block)).or_default().push(block));
        if let Some(found) = by_name.remove(&self.what) {
            return Ok(found);
        }
        let spelling = TypeSpelling::new(&self.what);
        let mut fitting: Vec<&String> = by_name.keys().filter(|name| spelling.fits(name)).collect();
        match fitting[..] {
            [name] => return Ok(by_name.remove(&name.clone()).unwrap_or_default()),
            [] => {}
            _ => {
                fitting.sort_by_key(|name| Reverse(by_name[*name].len()));
                return Err(self.heap.failure(anyhow::anyhow!(
                    "{} is short for {} types; write one of them: {}",
                    self.what,
                    fitting.len(),
                    named(fitting.iter().copied())
                )));
            }
        }
        let hint = match named(by_name.keys().filter(|name| name.contains(&self.what))) {
            names if names.is_empty() => "list all with: about-memory heap types".to_owned(),
            names => format!("similar ones: {names}"),
        };
        Err(self.heap.failure(anyhow::anyhow!("no block has the type {}; {hint}", self.what)))
    }

    fn text(&self, answer: &WhyAnswer<'_, '_>) -> String {
        let limit = self.heap.rows();
        let whole = answer.bytes();
        let rows = answer.holders.iter().take(limit).map(|row| (row.bytes, row.blocks, row.name.clone()));
        let mut text = format!(
            "{} in {}: {}\n\nHeld by\n{}{}\nFrom outside to the block at 0x{:x}\n",
            size(whole),
            counted(answer.blocks.len() as u64),
            about_memory::escape(&self.what),
            AmountTable::new(rows, whole).text(),
            left_out(answer.holders.len(), limit),
            answer.of_largest
        );
        for holder in &answer.chain {
            text += &format!("  {}\n", about_memory::escape(&holder.name));
        }
        text
    }

    fn json(&self, answer: &WhyAnswer<'_, '_>) -> String {
        let address = |block: usize| format!("{:x}", answer.heap.blocks()[block].address);
        let row = |row: &HolderRow| json!({"name": row.name, "blocks": row.blocks, "bytes": row.bytes});
        let link = |holder: &ChainLink| json!({"name": holder.name, "address": holder.block.map(address)});
        let limit = self.heap.rows();
        let rest = answer.holders.iter().skip(limit);
        let (count, blocks, bytes) = sums(rest.map(|row| (row.blocks, row.bytes.into())));
        let all = json!({
            "version": 1,
            "rest": { "rows": count, "blocks": blocks, "bytes": bytes },
            "what": self.what,
            "blocks": answer.blocks.len(),
            "bytes": answer.bytes(),
            "holders": answer.holders.iter().take(limit).map(row).collect::<Vec<_>>(),
            "largest": format!("{:x}", answer.of_largest),
            "chain": answer.chain.iter().map(link).collect::<Vec<_>>(),
        });
        format!("{all:#}\n")
    }
}

/// Joins the first [`SIMILAR`] names.
fn named<'n>(names: impl Iterator<Item = &'n String>) -> String {
    names.take(SIMILAR).map(String::as_str).collect::<Vec<_>>().join(", ")
}

struct WhyAnswer<'h, 'i> {
    heap: &'h TypedHeap<'i>,
    blocks: Vec<usize>,
    holders: Vec<HolderRow>,
    /// The chain of holders from outside of the heap to the largest block.
    chain: Vec<ChainLink>,
    of_largest: u64,
}

impl WhyAnswer<'_, '_> {
    fn bytes(&self) -> u64 {
        self.blocks.iter().map(|block| self.heap.blocks()[*block].usable).sum()
    }
}
