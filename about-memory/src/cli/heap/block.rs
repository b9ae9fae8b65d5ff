//! `about-memory heap block`.

mod reach;

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args;
use dmd_analyze::BlockOptions;

use super::super::Failure;
use super::super::dump_limits::DumpLimits;
use super::super::recorded::DumpOrRecording;
use super::super::spelling::frames;
use super::super::symbols::SymbolSearch;

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory dmd --clamp-contents scan.json.gz > blocks.txt
  about-memory heap block scan.json.gz 7f0000001000
  about-memory heap block scan.json.gz 7f0000001000 --chain-reports --ignore-alloc-fns
  about-memory heap block scan.json.gz 7f0000001000 --info
  about-memory heap block scan.json.gz 7f0000001000 --retained --chain

The options of Firefox's block_analyzer.py have the same meaning and give the same output.";

#[derive(Args)]
pub(crate) struct BlockCommand {
    /// A dump of scan mode with clamped contents (`about-memory dmd --clamp-contents`); `-` for standard input.
    file: PathBuf,
    /// The start address of the block, hexadecimal.
    #[arg(value_parser = BlockAddress::parse)]
    address: BlockAddress,
    /// Show the block itself instead of the blocks that point to it.
    #[arg(long)]
    info: bool,
    /// Longest frame to print, in characters including its number. The short form of this option is `-sfl`.
    #[arg(long, alias = "stack-frame-length", value_name = "CHARACTERS", default_value_t = 150)]
    max_stack_frame_length: usize,
    /// Remove allocator frames from the start of each stack.
    #[arg(long, short = 'a')]
    ignore_alloc_fns: bool,
    /// Frames to keep of each stack.
    #[arg(long, short_alias = 'f', value_name = "1..24", default_value_t = 8, value_parser = frames)]
    max_frames: u16,
    /// Follow the chain of referrers while each block has exactly one referrer.
    #[arg(long, short_alias = 'c')]
    chain_reports: bool,
    /// Show the blocks that only this block keeps alive, and each block that alone keeps this block alive.
    #[arg(long, conflicts_with_all = ["info", "chain_reports"])]
    retained: bool,
    /// Show a shortest chain of pointers from outside of the heap to the block.
    #[arg(long, conflicts_with_all = ["info", "chain_reports"])]
    chain: bool,
    #[command(flatten)]
    symbols: SymbolSearch,
    #[command(flatten)]
    limits: DumpLimits,
}

impl BlockCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        let failure =
            |error: dmd_analyze::AnalyzeError| Failure::File(self.file.display().to_string(), error.into());
        let read = self.limits.options().contents(true);
        let mut dump = DumpOrRecording::read(&self.file, &read)?.into_dump(
            &self.file,
            "the contents of blocks",
            "scan",
        )?;
        self.symbols.fix(&mut dump, &read);
        if self.retained || self.chain {
            let file = |error| Failure::File(self.file.display().to_string(), error);
            let reach = reach::BlockReach::new(&dump, self.address.number).map_err(file)?;
            let text = reach.text(self.retained, self.chain);
            let mut out = io::stdout().lock();
            return out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::Output);
        }
        let options = BlockOptions::new()
            .spelled(&self.address.spelled)
            .info(self.info)
            .chain(self.chain_reports)
            .frame_length(self.max_stack_frame_length)
            .max_frames(self.max_frames.into())
            .ignore_alloc_fns(self.ignore_alloc_fns);
        let text = dump.block_text(self.address.number, &options).map_err(failure)?;
        let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
        write!(out, "{text}").and_then(|()| out.flush()).map_err(Failure::Output)
    }
}

/// An address, as a number and as written.
#[derive(Clone)]
struct BlockAddress {
    number: u64,
    spelled: String,
}

impl BlockAddress {
    fn parse(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix("0x").or(text.strip_prefix("0X")).unwrap_or(text);
        if digits.starts_with('+') {
            return Err("not a hexadecimal number".to_owned());
        }
        let number =
            u64::from_str_radix(digits, 16).map_err(|_| "not a hexadecimal number of 64 bits".to_owned())?;
        Ok(Self { number, spelled: text.to_owned() })
    }
}
