//! Rewrites a scan dump: each word becomes the start of the block that it points into, or 0.
//!
//! Only the arrays `contents` change; all other text of the file stays as it is.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use dmd_format::Mode;
use flate2::Compression;
use flate2::write::GzEncoder;
use memory_report::ReadError;
use memory_report::reader::TextSource;

use crate::dump::{Dump, DumpReadOptions, open, read_with};
use crate::error::AnalyzeError;

/// Counts of the words of all blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClampStats {
    /// Words that already pointed to the start of a block.
    pub already_start: u64,
    /// Words that pointed into a block, and now point to its start.
    pub to_start: u64,
    /// Words that did not point into a block, and became 0.
    pub to_null: u64,
    /// Words that were 0.
    pub null: u64,
}

/// Rewrites a dump of scan mode, and returns the new dump with its contents.
///
/// A word that points into the requested bytes of a block becomes the block's address; every other word becomes 0.
/// Zeros at the end of a block's words are dropped. The new file replaces the old one as a whole when it is complete.
///
/// # Errors
///
/// Returns an error if the file is not a valid dump of scan mode, if it has no blocks, if blocks overlap, or if the
/// file cannot be written.
pub fn clamp(path: impl AsRef<Path>, options: &DumpReadOptions) -> Result<(Dump, ClampStats), AnalyzeError> {
    let path = fs::canonicalize(path).map_err(ReadError::Io)?;
    let mut dump = read_with(&path, &options.clone().contents(true))?;
    if dump.mode != Mode::Scan {
        return Err(AnalyzeError::NotScan(dump.mode));
    }
    let stats = clamp_words(&mut dump)?;
    rewrite(&path, &dump)?;
    Ok((dump, stats))
}

fn clamp_words(dump: &mut Dump) -> Result<ClampStats, AnalyzeError> {
    let mut ranges: Vec<(u64, u64)> =
        dump.scanned.iter().zip(&dump.blocks).map(|(scanned, block)| (scanned.addr, block.req)).collect();
    if ranges.is_empty() {
        return Err(AnalyzeError::NoBlocks);
    }
    ranges.sort_unstable();
    for pair in ranges.windows(2) {
        let [(start, len), (next, _)] = pair else { continue };
        if next - start < *len {
            return Err(AnalyzeError::Overlap(*start, *next));
        }
    }
    let mut stats = ClampStats::default();
    for word in &mut dump.words {
        if *word == 0 {
            stats.null += 1;
            continue;
        }
        let at = ranges.partition_point(|(start, _)| start <= word);
        match at.checked_sub(1).map(|at| ranges[at]) {
            Some((start, len)) if *word - start < len => {
                let count = if *word == start { &mut stats.already_start } else { &mut stats.to_start };
                *count += 1;
                *word = start;
            }
            _ => {
                stats.to_null += 1;
                *word = 0;
            }
        }
    }
    for scanned in &mut dump.scanned {
        let words = &dump.words[scanned.words.clone()];
        let kept = words.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1);
        scanned.words.end = scanned.words.start + kept;
    }
    Ok(stats)
}

fn rewrite(path: &Path, dump: &Dump) -> Result<(), AnalyzeError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".clamped-{}", std::process::id()));
    let new = ReplacementFile(Some(path.with_file_name(name)));
    let new_path = new.0.as_deref().expect("the path is present until the new file has replaced the old one");
    let permissions = fs::metadata(path).map_err(ReadError::Io)?.permissions();
    let mut private = OpenOptions::new();
    private.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut private, 0o600);
    let file = private.open(new_path).map_err(AnalyzeError::Write)?;
    let mut out = BufWriter::with_capacity(1 << 16, file);
    let gzip = {
        let mut magic = [0; 2];
        let mut old = open(path)?;
        io::Read::read_exact(&mut old, &mut magic).map_err(ReadError::Io)?;
        magic == [0x1f, 0x8b]
    };
    if gzip {
        let mut out = BufWriter::with_capacity(1 << 16, GzEncoder::new(out, Compression::default()));
        copy(path, dump, &mut out)?;
        let written = out.into_inner().map_err(io::IntoInnerError::into_error);
        written.and_then(GzEncoder::finish).and_then(|mut out| out.flush()).map_err(AnalyzeError::Write)?;
    } else {
        copy(path, dump, &mut out)?;
        out.flush().map_err(AnalyzeError::Write)?;
    }
    fs::set_permissions(new_path, permissions).map_err(AnalyzeError::Write)?;
    fs::rename(new_path, path).map_err(AnalyzeError::Write)?;
    new.done();
    Ok(())
}

/// A new file. Dropping this value removes the new file, unless the new file has replaced the old file.
struct ReplacementFile(Option<PathBuf>);

impl ReplacementFile {
    fn done(mut self) {
        self.0 = None;
    }
}

impl Drop for ReplacementFile {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // The caller already returns an error; a second error would hide the first.
            let _ = fs::remove_file(path);
        }
    }
}

/// Copies the text with the new words.
fn copy(path: &Path, dump: &Dump, out: &mut dyn Write) -> Result<(), AnalyzeError> {
    let mut source = TextSource::open(open(path)?)?;
    let mut buffer = vec![0; 1 << 16];
    let mut at = 0;
    let mut arrays = dump.scanned.iter().filter_map(|scanned| Some((scanned.text.clone()?, scanned)));
    let mut next = arrays.next();
    loop {
        let read = source.read(&mut buffer, at)?;
        if read == 0 {
            return Ok(());
        }
        let end = at + read as u64;
        let bytes =
            |from: u64, to: u64| &buffer[(from - (end - read as u64)) as usize..][..(to - from) as usize];
        while at < end {
            match &next {
                Some((array, scanned)) if array.start < end => {
                    if at <= array.start {
                        out.write_all(bytes(at, array.start)).map_err(AnalyzeError::Write)?;
                        words(out, &dump.words[scanned.words.clone()]).map_err(AnalyzeError::Write)?;
                    }
                    at = array.end.min(end);
                    if array.end <= end {
                        next = arrays.next();
                    } else {
                        // The array continues in the next piece of text, and its new words are already written.
                        at = end;
                    }
                }
                _ => {
                    out.write_all(bytes(at, end)).map_err(AnalyzeError::Write)?;
                    at = end;
                }
            }
        }
    }
}

fn words(out: &mut dyn Write, words: &[u64]) -> io::Result<()> {
    out.write_all(b"[")?;
    for (index, word) in words.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        write!(out, "{comma}\"{word:x}\"")?;
    }
    out.write_all(b"]")
}
