//! Finds the blocks that point to a block, in a scan dump with clamped contents. The output equals the output of
//! Firefox's `block_analyzer.py`.

use core::cell::OnceCell;
use core::fmt::{self, Display};

use dmd_format::Mode;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::dump::{CallId, Dump, FrameText};
use crate::error::AnalyzeError;
use crate::names::AllocatorFrames;
use crate::print::CleanText;
use crate::records::NO_STACK;

/// Options of the text about a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockOptions {
    info: bool,
    chain: bool,
    frame_length: usize,
    max_frames: usize,
    ignore_alloc_fns: bool,
    spelled: Option<String>,
}

impl Default for BlockOptions {
    fn default() -> Self {
        Self {
            info: false,
            chain: false,
            frame_length: 150,
            max_frames: 8,
            ignore_alloc_fns: false,
            spelled: None,
        }
    }
}

impl BlockOptions {
    /// The defaults of `block_analyzer.py`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether to show the block itself instead of its referrers. Default: no.
    #[must_use]
    pub fn info(mut self, info: bool) -> Self {
        self.info = info;
        self
    }

    /// Sets whether to follow a chain: while a block has one referrer, continue with that referrer. Default: no.
    #[must_use]
    pub fn chain(mut self, chain: bool) -> Self {
        self.chain = chain;
        self
    }

    /// Sets the maximum number of characters of a frame's text, its number included. Default: 150.
    #[must_use]
    pub fn frame_length(mut self, frame_length: usize) -> Self {
        self.frame_length = frame_length;
        self
    }

    /// Sets the maximum number of frames of each stack. Default: 8.
    #[must_use]
    pub fn max_frames(mut self, max_frames: usize) -> Self {
        self.max_frames = max_frames;
        self
    }

    /// Sets whether to drop allocator frames from the start of each stack: the frames in the list of
    /// `block_analyzer.py` and, in a dump of the crate `dmd`, the frames of Rust's libraries. Default: no.
    #[must_use]
    pub fn ignore_alloc_fns(mut self, ignore_alloc_fns: bool) -> Self {
        self.ignore_alloc_fns = ignore_alloc_fns;
        self
    }

    /// Sets the address as the user wrote it. The message about an unknown block contains it. Default: hexadecimal.
    #[must_use]
    pub fn spelled(mut self, spelled: impl Into<String>) -> Self {
        self.spelled = Some(spelled.into());
        self
    }
}

/// A block or its referrers. Its `Display` gives the text of `block_analyzer.py`.
#[derive(Debug)]
pub struct BlockText<'d> {
    dump: &'d Dump,
    address: u64,
    options: &'d BlockOptions,
    /// Whether each frame is an allocator's.
    dropped: OnceCell<Vec<bool>>,
    block: Option<usize>,
}

impl Dump {
    /// Shows the referrers of the block at an address, or the block itself. The dump must have been read with its
    /// contents.
    ///
    /// # Errors
    ///
    /// Returns an error if the mode of the dump is not scan. With [`info`](BlockOptions::info), also returns an error
    /// if the block's contents are not clamped.
    pub fn block_text<'d>(
        &'d self,
        address: u64,
        options: &'d BlockOptions,
    ) -> Result<BlockText<'d>, AnalyzeError> {
        if self.mode != Mode::Scan {
            return Err(AnalyzeError::NotScan(self.mode));
        }
        let starts: FxHashMap<u64, usize> =
            self.scanned.iter().enumerate().map(|(index, scanned)| (scanned.addr, index)).collect();
        let block = starts.get(&address).copied();
        if options.info
            && let Some(block) = block
        {
            let words = &self.words[self.scanned[block].words.clone()];
            if let Some(word) = words.iter().find(|word| **word != 0 && !starts.contains_key(word)) {
                return Err(AnalyzeError::NotClamped(address, *word));
            }
        }
        Ok(BlockText { dump: self, address, options, dropped: OnceCell::new(), block })
    }
}

impl Display for BlockText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.block {
            None => {
                match &self.options.spelled {
                    Some(spelled) => writeln!(f, "Object {} not found in traces.", CleanText(spelled))?,
                    None => writeln!(f, "Object {:x} not found in traces.", self.address)?,
                }
                f.write_str("It could still be the target of some nodes.\n")
            }
            Some(block) if self.options.info => self.info(f, block),
            Some(_) => self.referrers(f),
        }
    }
}

impl BlockText<'_> {
    fn info(&self, f: &mut fmt::Formatter<'_>, block: usize) -> fmt::Result {
        writeln!(f, "block: 0x{:x}", self.address)?;
        writeln!(f, "requested size: {} bytes\n", self.dump.blocks[block].req)?;
        f.write_str("block contents: ")?;
        for word in &self.dump.words[self.dump.scanned[block].words.clone()] {
            write!(f, "0x{word:x} ")?;
        }
        f.write_str("\n\nallocation stack:\n")?;
        self.stack(f, block)
    }

    fn referrers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut target = self.address;
        let mut visited = FxHashSet::default();
        let mut any = false;
        loop {
            let mut referrers = Vec::new();
            for (block, scanned) in self.dump.scanned.iter().enumerate() {
                let words = &self.dump.words[scanned.words.clone()];
                let offsets: Vec<String> = words
                    .iter()
                    .enumerate()
                    .filter(|(_, word)| **word == target)
                    // A word has 8 bytes, as in `block_analyzer.py`.
                    .map(|(index, _)| (8 * index).to_string())
                    .collect();
                if offsets.is_empty() {
                    continue;
                }
                any = true;
                referrers.push(scanned.addr);
                let plural = if offsets.len() > 1 { "s" } else { "" };
                let req = self.dump.blocks[block].req;
                write!(f, "0x{:x} size = {req} bytes at byte offset{plural} ", scanned.addr)?;
                writeln!(f, "{}", offsets.join(", "))?;
                self.stack(f, block)?;
                f.write_str("\n")?;
            }
            if !self.options.chain {
                break;
            }
            match referrers[..] {
                [] => {
                    f.write_str("Found no more referrers.\n")?;
                    break;
                }
                [only] => {
                    f.write_str("Chaining to next referrer.\n\n")?;
                    if !visited.insert(only) {
                        f.write_str("Found a loop.\n")?;
                        break;
                    }
                    target = only;
                }
                _ => {
                    f.write_str("Found too many referrers.\n")?;
                    break;
                }
            }
        }
        if !any {
            f.write_str("No referrers found.\n")?;
        }
        Ok(())
    }

    fn stack(&self, f: &mut fmt::Formatter<'_>, block: usize) -> fmt::Result {
        let trace = self.dump.blocks[block].alloc;
        if trace.index().is_none() {
            return self.line(f, NO_STACK);
        }
        let dropped = self.dropped();
        let is_dropped = |frame: &&CallId| dropped.get(frame.index()).copied().unwrap_or(false);
        let frames = self.dump.trace(trace).iter().skip_while(is_dropped);
        for frame in frames.take(self.options.max_frames) {
            self.line(f, self.dump.frames.text(*frame).as_str())?;
        }
        Ok(())
    }

    fn line(&self, f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
        // The number is not printed, but its characters count.
        let kept: String = text.chars().take(self.options.frame_length).skip(5).collect();
        writeln!(f, "  {}", CleanText(&kept))
    }

    fn dropped(&self) -> &[bool] {
        self.dropped.get_or_init(|| match self.options.ignore_alloc_fns {
            true => {
                let rust = self.dump.has_modules();
                let is_dropped = |text: FrameText<'_>| {
                    AllocatorFrames::Blocks.has(text) || rust && AllocatorFrames::CAndRust.has(text)
                };
                self.dump.frames.ids().map(|frame| is_dropped(self.dump.frames.text(frame))).collect()
            }
            false => Vec::new(),
        })
    }
}
