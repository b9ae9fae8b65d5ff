//! Leaks as JSON, for programs.

use core::fmt::{self, Display};

use super::mapped::MappingLeak;
use super::{LeakGroup, Leaks, NoLeakReason, StackGrowth};
use crate::dump::FrameText;
use crate::print::{JsonString, list};
use crate::recording::KeptMappings;
use crate::records::CutStackId;

/// Leaks as JSON.
///
/// The text is an object with these members:
/// - `version` (1) and `warnings`.
/// - `blocks` and `bytes` (usable bytes): the sums of all leaks. For a sample by bytes also `estimated`, and
///   `standardError`, an upper bound of the standard error of `bytes`.
/// - `beganLate`, only if true: the recording started while the program ran, and does not contain older blocks.
/// - `at`, only if the blocks are not from the end: their time in seconds.
/// - `freedAtExit`, only if the program freed blocks at its exit: the `bytes` of these blocks, and the last time at
///   which they were alive, in `seconds`.
/// - `stacks`: the number of stacks of leaks.
/// - `leaks`: each with `blocks`, `bytes`, `requested` bytes, `sizes` (pairs of usable size and count, the largest size
///   first), and the stack `allocatedAt`, innermost frame first. A leak of a recording also has `growth` (`again` if
///   the program allocated the blocks in several parts of the time, else `once`), `allocations` (all allocations of the
///   stack, freed blocks included), `first` and `last` (the times of the first and the last block, in seconds), and
///   `times`: the number of blocks from each twentieth of the time.
/// - `rest`: the number of `stacks` that `leaks` does not contain, with their `blocks`, `bytes` and `requested` bytes.
/// - `mappings`, only if the program mapped memory with `mmap` and did not unmap it: for each stack the number of
///   `mappings`, their `bytes`, `file` (whether they have the contents of files), `made` (all mappings of the stack,
///   removed ones included), `first` and `last` (their times in seconds), and the stack `mappedAt`.
/// - `restOfMappings`, beside `mappings`: the number of further `stacks`, with their `mappings` and `bytes`.
/// - `apart`: `blocks`, `bytes` and `requested` bytes of blocks that are not leaks, with the reason as `what`.
#[derive(Debug)]
pub struct LeaksJson<'l> {
    leaks: &'l Leaks,
    rows: usize,
}

impl<'l> LeaksJson<'l> {
    pub(super) fn new(leaks: &'l Leaks, rows: usize) -> Self {
        Self { leaks, rows }
    }

    fn group(&self, f: &mut fmt::Formatter<'_>, group: &LeakGroup) -> fmt::Result {
        write!(f, "{{\"blocks\": {}, \"bytes\": {}, ", group.blocks, group.bytes)?;
        write!(f, "\"requested\": {}, \"sizes\": [", group.requested)?;
        list(f, &group.sizes, "", |f, (size, count)| write!(f, "[{size}, {count}]"))?;
        f.write_str("]")?;
        match group.growth {
            StackGrowth::Again => f.write_str(", \"growth\": \"again\"")?,
            StackGrowth::Once => f.write_str(", \"growth\": \"once\"")?,
            StackGrowth::Unknown => {}
        }
        if let Some(allocations) = group.allocations {
            write!(f, ", \"allocations\": {allocations}")?;
        }
        if let Some((first, last)) = group.times {
            write!(
                f,
                ", \"first\": {}, \"last\": {}, \"times\": [",
                first.as_secs_f64(),
                last.as_secs_f64()
            )?;
            list(f, &group.steps, "", |f, blocks| write!(f, "{blocks}"))?;
            f.write_str("]")?;
        }
        f.write_str(", \"allocatedAt\": [")?;
        self.frames(f, group.stack)
    }

    fn mapping(&self, f: &mut fmt::Formatter<'_>, leak: &MappingLeak) -> fmt::Result {
        let KeptMappings { is_file, ranges, bytes, mappings, times: (first, last), .. } = leak.kept;
        let [first, last] = [first, last].map(|time| time.as_secs_f64());
        write!(
            f,
            "{{\"mappings\": {ranges}, \"bytes\": {bytes}, \"file\": {is_file}, \"made\": {mappings}, "
        )?;
        write!(f, "\"first\": {first}, \"last\": {last}, \"mappedAt\": [")?;
        self.frames(f, leak.stack)
    }

    /// Writes the frames of a stack, and the end of its list and object.
    fn frames(&self, f: &mut fmt::Formatter<'_>, stack: CutStackId) -> fmt::Result {
        let frames: Vec<&str> = self.leaks.analysis.frames(stack).map(FrameText::without_number).collect();
        list(f, &frames, "", |f, frame| write!(f, "{}", JsonString(frame)))?;
        f.write_str("]}")
    }
}

impl Display for LeaksJson<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let leaks = self.leaks;
        f.write_str("{\n \"version\": 1,\n \"warnings\": [")?;
        list(f, &leaks.warnings, "", |f, warning| write!(f, "{}", JsonString(warning)))?;
        let groups: Vec<&LeakGroup> = leaks.leaked().collect();
        write!(f, "],\n \"blocks\": {},\n \"bytes\": {},\n", leaks.blocks(), leaks.bytes())?;
        if leaks.outline.as_ref().is_some_and(|outline| outline.began_late) {
            f.write_str(" \"beganLate\": true,\n")?;
        }
        if let Some(at) = leaks.at {
            writeln!(f, " \"at\": {},", at.as_secs_f64())?;
        }
        if let Some((bytes, after)) = leaks.freed_at_exit() {
            let seconds = after.as_secs_f64();
            writeln!(f, " \"freedAtExit\": {{\"bytes\": {bytes}, \"seconds\": {seconds}}},")?;
        }
        if let Some(sample) = leaks.analysis.sample() {
            let error = sample.largest_error(u64::try_from(leaks.bytes()).unwrap_or(u64::MAX));
            write!(f, " \"estimated\": true,\n \"standardError\": {error:.0},\n")?;
        }
        write!(f, " \"stacks\": {},\n \"leaks\": [", groups.len())?;
        let (shown, rest) = groups.split_at(groups.len().min(self.rows));
        list(f, shown, "\n  ", |f, group| self.group(f, group))?;
        let blocks: u128 = rest.iter().map(|group| u128::from(group.blocks)).sum();
        let bytes: u128 = rest.iter().map(|group| group.bytes).sum();
        let requested: u128 = rest.iter().map(|group| group.requested).sum();
        write!(f, "],\n \"rest\": {{\"stacks\": {}, \"blocks\": {blocks}, ", rest.len())?;
        write!(f, "\"bytes\": {bytes}, \"requested\": {requested}}}")?;
        if !leaks.mappings.is_empty() {
            f.write_str(",\n \"mappings\": [")?;
            let (shown, rest) = leaks.mappings.split_at(leaks.mappings.len().min(self.rows));
            list(f, shown, "\n  ", |f, leak| self.mapping(f, leak))?;
            let mappings: u128 = rest.iter().map(|leak| u128::from(leak.kept.ranges)).sum();
            let bytes: u128 = rest.iter().map(|leak| u128::from(leak.kept.bytes)).sum();
            write!(f, "],\n \"restOfMappings\": {{\"stacks\": {}, ", rest.len())?;
            write!(f, "\"mappings\": {mappings}, \"bytes\": {bytes}}}")?;
        }
        f.write_str(",\n \"apart\": [")?;
        let apart: Vec<(NoLeakReason, (u64, u128, u128))> = leaks.apart().into_iter().collect();
        list(f, &apart, "\n  ", |f, (apart, (blocks, bytes, requested))| {
            let what = match apart {
                NoLeakReason::OneTime(kind) => kind.name(),
                NoLeakReason::Ignored => "ignored",
                NoLeakReason::Older => "from before the recording",
            };
            write!(f, "{{\"what\": \"{what}\", \"blocks\": {blocks}, \"bytes\": {bytes}, ")?;
            write!(f, "\"requested\": {requested}}}")
        })?;
        f.write_str("]\n}\n")
    }
}
