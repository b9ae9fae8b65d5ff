//! The life of the heap in a few lines: the peak, the end, and the allocations.

use core::fmt::{self, Display};

use dmd_format::Mode;

use super::line::bytes;
use crate::dump::{
    BlackBoxDump, ByteSample, CallFrame, Dump, DumpPeak, DumpStatistics, DumpTime, RecordingOutline,
};
use crate::names::{FoldRules, Workspace};
use crate::print::{blocks, mark, number};
use crate::records::BlockSums;

/// A view shows the peak if the heap has shrunk by more than a tenth (`1 / SHRUNK`) since the peak.
const SHRUNK: u128 = 10;

/// The facts of a dump about the whole life of its program. Its `Display` writes a few lines.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HeapOverview {
    /// The time that the view shows.
    pub at: DumpTime,
    peak: Option<DumpPeak>,
    statistics: Option<DumpStatistics>,
    /// Whether the counts of allocations are from a sample.
    is_sample: bool,
    /// The sample, if all amounts are estimates from a sample by bytes.
    sample: Option<ByteSample>,
    /// Usable bytes and blocks at the end; `None` for a cumulative dump.
    end: Option<(u128, u128)>,
    /// Whether reporters have reported a block.
    is_reported: bool,
    /// Whether the end of the file is missing.
    is_cut: bool,
    /// The facts of the black box that wrote the dump.
    black_box: Option<BlackBoxDump>,
}

impl Dump {
    /// Whether the program has line numbers, after the symbols were looked up. False if a function of the program
    /// itself has no line, and no function of the program's own sources has a line: the program was built without debug
    /// information.
    pub fn has_lines_of_program(&self) -> bool {
        let frames = || self.frames.ids().map(|id| self.frames.get(id));
        let is_of_rust = self.is_of_rust();
        let is_shim = |frame: &CallFrame<'_>| is_of_rust && is_shim(frame);
        if !frames().any(|frame| is_in_program(&frame) && frame.line.is_none() && !is_shim(&frame)) {
            return true;
        }
        let (workspace, folds) = (Workspace::from_frames(frames()), FoldRules::new());
        // The owner of a C file is unknown, but files of system libraries have relative paths.
        let is_c = |frame: &CallFrame<'_>| {
            frame.file.is_some_and(|file| !file.ends_with(".rs")) && folds.reason(frame).is_none()
        };
        frames().any(|frame| {
            frame.line.is_some() && (workspace.owns(&frame) || is_in_program(&frame) && is_c(&frame))
        })
    }

    /// Returns the advice to build the program with line numbers. `None` if it has line numbers.
    pub fn line_advice(&self) -> Option<&'static str> {
        if self.has_lines_of_program() {
            return None;
        }
        Some(match self.is_of_rust() {
            true => {
                "The program has no line numbers. To get them, build it with debug information; in Cargo.toml:\n  \
                 [profile.release]\n  debug = \"line-tables-only\"\n"
            }
            false => {
                "The program has no line numbers. To get them, build it with debug information: the compilers of C \
                 and C++ add it with -g.\n"
            }
        })
    }

    /// Whether the program itself has functions of Rust. Libraries that it loads do not count.
    pub fn is_of_rust(&self) -> bool {
        let frames = || self.frames.ids().map(|id| self.frames.get(id));
        let starts = ["core::", "alloc::", "std::", "__rust_", "__rustc", "<alloc::", "<core::", "<std::"];
        frames().filter(is_in_program).any(|frame| {
            frame.file.is_some_and(|file| file.ends_with(".rs"))
                || frame.function.is_some_and(|name| starts.iter().any(|start| name.starts_with(start)))
        })
    }
}

/// Whether the compiler or the C library makes the function in each program of Rust. It never has a line.
fn is_shim(frame: &CallFrame<'_>) -> bool {
    const STARTS: [&str; 3] = ["__rust", "__rdl_", "__rg_"];
    frame.function.is_some_and(|name| {
        matches!(name, "main" | "_start" | "_init") || STARTS.iter().any(|start| name.starts_with(start))
    })
}

/// Whether the function is in the program itself, not in a shared library. The name of the function's module shows
/// this.
fn is_in_program(frame: &CallFrame<'_>) -> bool {
    !frame.module.is_some_and(|module| {
        let name = module.rsplit('/').next().unwrap_or(module);
        name.ends_with(".so") || name.contains(".so.")
    })
}

/// Explains which blocks at the peak count as reported.
const REPORTED_SINCE: &str =
    "Reporters ran later. A block counts as reported if they reported a block of the same stack.\n";

/// The warning about a recording that started while the program ran.
pub(super) const LATE: &str =
    "The recording began while the program ran. It contains neither older blocks nor their frees.\n";

impl HeapOverview {
    /// The facts of a dump, and the time that a view of the dump should show: `at`. If `at` is `None`, the view should
    /// show the end or, if the heap has shrunk by more than a tenth since the peak, the peak.
    ///
    /// A dump from a recording has the blocks of one time only: the view always shows this time.
    pub fn new(dump: &Dump, at: Option<DumpTime>) -> Self {
        if let Some(outline) = &dump.outline {
            return Self::from_outline(outline, dump.shown);
        }
        let end = dump.blocks.iter().fold((0, 0), |(bytes, blocks), block| {
            let sums = BlockSums::from_block(block);
            (bytes + sums.usable().unsigned_abs(), blocks + sums.num.unsigned_abs())
        });
        let requested =
            || dump.blocks.iter().map(|block| BlockSums::from_block(block).req.unsigned_abs()).sum::<u128>();
        let has_shrunk = dump.peak().is_some_and(|peak| {
            let end = if peak.is_usable() { end.0 } else { requested() };
            let peak = u128::from(peak.bytes());
            end < peak - peak / SHRUNK
        });
        let default =
            if has_shrunk && dump.mode != Mode::Cumulative { DumpTime::Peak } else { DumpTime::End };
        let is_sample = dump.blocks.iter().any(|block| block.sampled);
        Self {
            at: at.unwrap_or(default),
            peak: dump.peak().cloned(),
            statistics: dump.statistics().copied(),
            is_sample,
            sample: dump.sample().copied(),
            end: (dump.mode != Mode::Cumulative).then_some(end),
            is_reported: dump.has_reports(),
            is_cut: dump.is_cut,
            black_box: dump.black_box.clone(),
        }
    }
}

impl Display for HeapOverview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.life(f)?;
        match (self.at, &self.peak) {
            (DumpTime::Peak, Some(_)) => {
                writeln!(f, "\nAt the peak (--at end shows the end):")?;
                if self.is_reported {
                    f.write_str(REPORTED_SINCE)?;
                }
                Ok(())
            }
            (DumpTime::End, Some(_)) => writeln!(f, "\nAt the end (--at peak shows the peak):"),
            (DumpTime::Time(time), _) => writeln!(f, "\n{} after the start:", seconds(time.as_secs_f64())),
            (DumpTime::Window(from, to), _) => writeln!(
                f,
                "\nAllocated between {} and {}, and still alive then:",
                seconds(from.as_secs_f64()),
                seconds(to.as_secs_f64())
            ),
            _ => writeln!(f),
        }
    }
}

impl HeapOverview {
    /// Collects the facts of a recording.
    pub(super) fn from_outline(outline: &RecordingOutline, at: DumpTime) -> Self {
        Self {
            at,
            peak: Some(DumpPeak {
                bytes: u64::try_from(outline.peak.bytes).unwrap_or(u64::MAX),
                blocks: outline.peak.blocks,
                seconds: outline.peak.time.as_secs_f64(),
                within: 0,
                is_usable: true,
                stacks: Vec::new(),
            }),
            statistics: Some(outline.statistics),
            is_sample: false,
            sample: None,
            end: Some((outline.end.bytes, outline.end.blocks.into())),
            is_reported: false,
            is_cut: false,
            black_box: None,
        }
    }

    /// The lines about the whole life of the program: the peak, the end and the allocations.
    pub fn life_text(&self) -> impl Display + '_ {
        LifeText(self)
    }

    /// Writes the lines about the peak, the end and the allocations.
    pub(super) fn life(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = |amount: u128| bytes(i128::try_from(amount).unwrap_or(i128::MAX));
        let count = |count: u128| blocks(i128::try_from(count).unwrap_or(i128::MAX));
        let mark = mark(self.sample.is_some());
        if self.is_cut {
            f.write_str("The file is cut: stacks may be missing, and functions may lack their names.\n")?;
        }
        if let Some(black_box) = &self.black_box {
            writeln!(f, "{black_box}")?;
        }
        if let Some(peak) = &self.peak {
            // In older dumps, the peak is in requested bytes, and all other amounts are in usable bytes.
            let measure = if peak.is_usable() { "" } else { " requested" };
            write!(
                f,
                "Peak: {mark}{}{measure} in {mark}{}, {} after the start",
                size(peak.bytes().into()),
                count(peak.blocks().into()),
                seconds(peak.seconds()),
            )?;
            match &self.sample {
                None if peak.within() == 0 => writeln!(f, ".")?,
                None if peak.is_usable() => {
                    writeln!(f, "; at most {} from the true peak.", size(peak.within().into()))?;
                }
                None => writeln!(f, "; within {}.", size(peak.within().into()))?,
                Some(sample) => {
                    writeln!(
                        f,
                        "; standard error at most {}.",
                        size(whole(sample.largest_error(peak.bytes())))
                    )?;
                }
            }
        }
        if let Some((bytes, blocks)) = self.end {
            write!(f, "End:  {mark}{} in {mark}{}", size(bytes), count(blocks))?;
            match &self.statistics {
                None => match &self.sample {
                    None => writeln!(f, ".")?,
                    Some(sample) => writeln!(f, "; standard error {}.", size(whole(sample.standard_error)))?,
                },
                Some(statistics) => writeln!(f, ", {} after the start.", seconds(statistics.seconds))?,
            }
        }
        match &self.statistics {
            Some(statistics) if !self.is_sample => {
                let DumpStatistics { seconds: length, allocations, reallocations, temporary, .. } =
                    *statistics;
                let all = allocations.saturating_add(reallocations);
                let rate = if length > 0.0 { all as f64 / length } else { 0.0 };
                let share = if all == 0 { 0.0 } else { 100.0 * temporary as f64 / all as f64 };
                writeln!(
                    f,
                    "{} allocations, {} a second; {share:.0}% temporary: freed before the thread's next one.",
                    number(all.into()),
                    number(rate as i128)
                )?;
            }
            _ => {}
        }
        if let Some(sample) = &self.sample {
            let amounts = [1 << 20, 100 << 20];
            let [small, large] = amounts.map(|amount| size(whole(sample.largest_error(amount))));
            // The number of the sample's blocks that were live at the peak is unknown.
            let recorded = match (self.at, sample.recorded) {
                (DumpTime::Peak, _) | (_, 0) => String::new(),
                (_, recorded) => format!(" of {}", count(recorded.into())),
            };
            writeln!(
                f,
                "Estimated from a sample{recorded}, one block per {} allocated. The standard error of an amount is at most\n\
                 {small} for {}, {large} for {}.",
                size(sample.mean.into()),
                size(amounts[0].into()),
                size(amounts[1].into())
            )?;
        }
        Ok(())
    }
}

/// The lines about the whole life of a program.
struct LifeText<'a>(&'a HeapOverview);

impl Display for LifeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.life(f)
    }
}

/// Bytes, rounded to a whole number.
fn whole(bytes: f64) -> u128 {
    bytes.round() as u128
}

pub(super) fn seconds(seconds: f64) -> String {
    if seconds < 10.0 { format!("{seconds:.2} s") } else { format!("{seconds:.0} s") }
}
