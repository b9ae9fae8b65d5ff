//! Leaks as text.

use core::fmt::{self, Display};
use core::time::Duration;

use super::mapped::MappingLeaksText;
use super::{LeakGroup, Leaks, NoLeakReason, StackGrowth};
use crate::dump::DumpTime;
use crate::print::{blocks, mark, number, percent};
use crate::program::ProgramOptions;
use crate::program::chart::bars;
use crate::program::line::{bold, bytes};
use crate::program::overview::{HeapOverview, LATE, seconds};
use crate::program::stack_text::StackText;

/// The maximum number of block sizes in the line of a stack.
const SIZES: usize = 4;

/// Leaks as text. Its `Display` gives the text.
#[derive(Debug)]
pub struct LeaksText<'l> {
    leaks: &'l Leaks,
    rows: usize,
    options: &'l ProgramOptions,
}

impl<'l> LeaksText<'l> {
    pub(super) fn new(leaks: &'l Leaks, rows: usize, options: &'l ProgramOptions) -> Self {
        Self { leaks, rows, options }
    }
}

impl StackGrowth {
    /// The title of a list of stacks. `is_end` is set if the list shows the blocks that are alive at the end.
    fn title(self, is_end: bool) -> &'static str {
        match (self, is_end) {
            (Self::Again, true) => "Allocated again and again, and never freed",
            (Self::Once, true) => "Allocated at one time, and never freed",
            (Self::Again, false) => "Allocated again and again, and alive",
            (Self::Once, false) => "Allocated at one time, and alive",
            (Self::Unknown, _) => "Not freed",
        }
    }
}

impl Display for LeaksText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let leaks = self.leaks;
        if let Some(outline) = &leaks.outline {
            HeapOverview::from_outline(outline, DumpTime::End).life(f)?;
            if outline.began_late {
                f.write_str(LATE)?;
            }
            f.write_str("\n")?;
        }
        let all = self.sums(leaks.blocks(), leaks.bytes());
        let title = match leaks.at {
            None => format!("Leaked: {all}."),
            Some(at) => format!("Alive {} after the start: {all}.", seconds(at.as_secs_f64())),
        };
        writeln!(f, "{}", bold(&title, self.options))?;
        if let (Some((freed, after)), Some(outline)) = (leaks.freed_at_exit(), &leaks.outline) {
            let took = seconds(outline.end.time.saturating_sub(after).as_secs_f64());
            let freed = bytes(signed(freed));
            let at = moment(after);
            writeln!(f, "{freed} were freed in the last {took}, at exit: --at {at} shows these blocks.")?;
        }
        if let Some(sample) = leaks.analysis.sample() {
            let most = u64::try_from(leaks.bytes()).unwrap_or(u64::MAX);
            let error = bytes(sample.largest_error(most).round() as i128);
            writeln!(
                f,
                "Estimated from a sample by bytes; the standard error of the sum is at most {error}."
            )?;
        }
        let stacks = StackText::new(&leaks.analysis, self.options);
        let mut index = 0;
        for growth in [StackGrowth::Again, StackGrowth::Once, StackGrowth::Unknown] {
            let groups: Vec<&LeakGroup> = leaks.leaked().filter(|group| group.growth == growth).collect();
            if groups.is_empty() {
                continue;
            }
            let count = groups.iter().map(|group| group.blocks).sum();
            let size = groups.iter().map(|group| group.bytes).sum();
            writeln!(
                f,
                "\n{}",
                bold(
                    &format!("{}: {}", growth.title(leaks.at.is_none()), self.sums(count, size)),
                    self.options
                )
            )?;
            for group in groups.iter().take(self.rows) {
                index += 1;
                self.group(f, index, group, &stacks)?;
            }
            let rest = &groups[groups.len().min(self.rows)..];
            if !rest.is_empty() {
                let size = rest.iter().map(|group| group.bytes).sum();
                let more = number(rest.len() as i128);
                writeln!(f, "\n{more} more stacks with {}; --limit shows more.", bytes(signed(size)))?;
            }
        }
        let (options, rows, is_end) = (self.options, self.rows, leaks.at.is_none());
        write!(f, "{}", MappingLeaksText { leaks: &leaks.mappings, stacks: &stacks, options, rows, is_end })?;
        self.apart(f)
    }
}

impl LeaksText<'_> {
    /// The mark before estimated amounts: `~`, or an empty text.
    fn mark(&self) -> &'static str {
        mark(self.leaks.analysis.sample().is_some())
    }

    fn sums(&self, count: u64, size: u128) -> String {
        let mark = self.mark();
        format!("{mark}{} in {mark}{}", bytes(signed(size)), blocks(count.into()))
    }

    fn group(
        &self,
        f: &mut fmt::Formatter<'_>,
        index: usize,
        group: &LeakGroup,
        stacks: &StackText<'_>,
    ) -> fmt::Result {
        let mark = self.mark();
        let amount = bold(&format!("{mark}{}", bytes(signed(group.bytes))), self.options);
        let share = percent(signed(group.bytes), signed(self.leaks.bytes()));
        let count = blocks(group.blocks.into());
        writeln!(f, "\n{index}. {amount}  {share}  in {mark}{count}{}", sizes(&group.sizes))?;
        if let Some((first, last)) = group.times {
            let (first, last) = (first.as_secs_f64(), last.as_secs_f64());
            let mut line = match group.blocks {
                1 => format!("   allocated after {}", seconds(first)),
                _ => format!("   allocated after {} to {}", seconds(first), seconds(last)),
            };
            if let Some(allocations) = group.allocations.filter(|all| *all > group.blocks) {
                line += &format!(", out of {} allocations", number(allocations.into()));
            }
            if let Some(rate) = group.rate().filter(|_| group.growth == StackGrowth::Again) {
                line += &format!(", {} a second", bytes(rate as i128));
                let bars = bars(&group.steps, group.steps.len());
                line += &format!("  {}", bars.trim_end());
            }
            writeln!(f, "{line}")?;
        }
        stacks.type_of(f, group.stack)?;
        stacks.stack(f, group.stack)
    }

    fn apart(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let apart = self.leaks.apart();
        if apart.is_empty() {
            return Ok(());
        }
        writeln!(
            f,
            "\n{}",
            bold(&format!("{:>13}  {:>9}  alive, but not leaks", "bytes", "blocks"), self.options)
        )?;
        for (apart, (count, size, _)) in apart {
            let name = match apart {
                NoLeakReason::OneTime(kind) => format!("made once: {kind}"),
                NoLeakReason::Ignored => "ignored".to_owned(),
                NoLeakReason::Older => "from before the recording".to_owned(),
            };
            writeln!(f, "{:>13}  {:>9}  {name}", bytes(signed(size)), number(count.into()))?;
        }
        Ok(())
    }
}

/// A time in the syntax of `--at`, rounded down.
fn moment(time: Duration) -> String {
    let digits = if time.as_secs() < 10 { 1_000 } else { 100 };
    format!("{}s", (time.as_secs_f64() * f64::from(digits)).floor() / f64::from(digits))
}

fn signed(amount: u128) -> i128 {
    i128::try_from(amount).unwrap_or(i128::MAX)
}

/// The sizes of blocks, such as `: 8.00 MiB x 5, 2.00 MiB`.
fn sizes(all: &[(u64, u64)]) -> String {
    if matches!(all, [] | [(_, 1)]) {
        return String::new();
    }
    let one = |(size, count): &(u64, u64)| match count {
        1 => bytes((*size).into()),
        _ => format!("{} x {}", bytes((*size).into()), number((*count).into())),
    };
    let mut shown: Vec<String> = all.iter().take(SIZES).map(one).collect();
    if all.len() > SIZES {
        shown.push("...".to_owned());
    }
    format!(": {}", shown.join(", "))
}
