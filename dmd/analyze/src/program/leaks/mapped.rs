//! Memory that the program mapped itself, and never unmapped.

use core::cmp::Reverse;
use core::fmt::{self, Display};

use super::{LeakOptions, OneTime};
use crate::print::{number, percent};
use crate::program::ProgramOptions;
use crate::program::line::{bold, bytes};
use crate::program::overview::seconds;
use crate::program::stack_text::StackText;
use crate::recording::KeptMappings;
use crate::records::{Analysis, CutStackId};

/// The mappings of one stack.
#[derive(Debug)]
pub(super) struct MappingLeak {
    pub(super) stack: CutStackId,
    pub(super) kept: KeptMappings,
}

/// Finds the mappings that count as leaks: not the memory of allocators, nor what libraries map once, nor stacks with an
/// ignored frame. `of_stacks` has the analysis's stack for each of the mappings.
pub(super) fn leaks(
    kept: Vec<KeptMappings>,
    allocators: Vec<Option<&'static str>>,
    of_stacks: &[CutStackId],
    analysis: &Analysis,
    options: &LeakOptions,
) -> Vec<MappingLeak> {
    let is_leak = |stack: CutStackId| {
        let texts: Vec<_> = analysis.frames(stack).collect();
        let is_ignored =
            texts.iter().any(|text| options.ignored.iter().any(|rule| rule(text.without_number())));
        let frames: Vec<_> = texts.iter().map(|text| text.frame()).collect();
        !is_ignored && (options.known || OneTime::find(&frames).is_none())
    };
    let all = kept.into_iter().zip(allocators).zip(of_stacks);
    let of_program = all.filter(|((_, allocator), stack)| allocator.is_none() && is_leak(**stack));
    let mut leaks: Vec<MappingLeak> =
        of_program.map(|((kept, _), stack)| MappingLeak { stack: *stack, kept }).collect();
    leaks.sort_by_key(|leak| (Reverse(leak.kept.bytes), leak.stack));
    leaks
}

/// The mappings as text, with at most `rows` stacks.
pub(super) struct MappingLeaksText<'l> {
    pub(super) leaks: &'l [MappingLeak],
    pub(super) stacks: &'l StackText<'l>,
    pub(super) options: &'l ProgramOptions,
    pub(super) rows: usize,
    /// Whether the mappings exist at the end.
    pub(super) is_end: bool,
}

impl Display for MappingLeaksText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.leaks.is_empty() {
            return Ok(());
        }
        let sum: u128 = self.leaks.iter().map(|leak| u128::from(leak.kept.bytes)).sum();
        let sum = i128::try_from(sum).unwrap_or(i128::MAX);
        let count =
            |count: u64| format!("{} mapping{}", number(count.into()), if count == 1 { "" } else { "s" });
        let all = self.leaks.iter().map(|leak| leak.kept.ranges).sum();
        let title = if self.is_end { "Mapped with mmap, and never unmapped" } else { "Mapped with mmap" };
        writeln!(f, "\n{}", bold(&format!("{title}: {} in {}", bytes(sum), count(all)), self.options))?;
        for (index, MappingLeak { stack, kept }) in self.leaks.iter().take(self.rows).enumerate() {
            let amount = bold(&bytes(kept.bytes.into()), self.options);
            let share = percent(kept.bytes.into(), sum);
            let of_files = if kept.is_file { " of files" } else { "" };
            writeln!(f, "\n{}. {amount}  {share}  in {}{of_files}", index + 1, count(kept.ranges))?;
            let [first, last] = [kept.times.0, kept.times.1].map(|time| seconds(time.as_secs_f64()));
            let mut line = match kept.ranges {
                1 => format!("   mapped after {first}"),
                _ => format!("   mapped after {first} to {last}"),
            };
            if kept.mappings > kept.ranges {
                line += &format!(", out of {}", count(kept.mappings));
            }
            writeln!(f, "{line}")?;
            self.stacks.stack(f, *stack)?;
        }
        match self.leaks.len().saturating_sub(self.rows) {
            0 => Ok(()),
            more => writeln!(f, "\n{} more stacks; --limit shows more.", number(more as i128)),
        }
    }
}
