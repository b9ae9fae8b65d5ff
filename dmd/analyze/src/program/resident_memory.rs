//! The resident memory of a process by owner: live blocks, other memory of allocators, mappings, stacks, code. The rows
//! add up to the kernel's own figure.

use core::cmp::Reverse;
use core::fmt::{self, Display};
use std::collections::{BTreeMap, BTreeSet};

use super::ProgramOptions;
use super::line::{bold, bytes, dim, name, place, tails};
use super::mapping_caller::allocator;
use crate::dump::{CallFrame, Dump, DumpTraceId, MemoryArea, MemoryOwner};
use crate::error::AnalyzeError;
use crate::names::{FoldedStack, Workspace};
use crate::print::{CleanText, JsonString, list, number, percent};
use crate::records::BlockSums;

/// The owner of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ResidentOwner {
    /// The blocks that the program has not freed.
    LiveBlocks,
    /// Free memory of an allocator, and its own tables. The name is the allocator's.
    AllocatorRest,
    /// Mappings that the program made itself. The name is the function's.
    Mapping,
    /// A mapped file, or shared memory.
    File,
    /// The stacks of all threads.
    Stacks,
    /// The code and the data of programs and libraries.
    Binaries,
    /// DMD itself.
    Dmd,
    /// Pages of the kernel.
    Kernel,
    /// Memory without a known owner.
    Unknown,
    /// The kernel's sum minus the sum of the areas.
    Difference,
}

impl ResidentOwner {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::LiveBlocks => "live blocks",
            Self::AllocatorRest => "allocator",
            Self::Mapping => "mapping",
            Self::File => "file",
            Self::Stacks => "stacks",
            Self::Binaries => "binaries",
            Self::Dmd => "dmd",
            Self::Kernel => "kernel",
            Self::Unknown => "unknown",
            Self::Difference => "difference",
        }
    }
}

/// One owner of resident memory.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ResidentRow {
    /// The owner.
    pub owner: ResidentOwner,
    /// The owner in words.
    pub name: String,
    /// The source line of a mapping, or the function that mapped a file; empty for other rows.
    pub place: String,
    /// Bytes in memory. The difference may be negative.
    pub resident: i128,
    /// Bytes that are swapped out.
    pub swapped: i128,
}

/// A function with large blocks that the program has hardly touched.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UntouchedSite {
    /// The function.
    pub name: String,
    /// Its source line.
    pub place: String,
    /// The sums of its blocks.
    pub sums: BlockSums,
}

/// The resident memory of a process by owner. Its `Display` writes a table.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ResidentMemory {
    /// The resident bytes of the process, by the kernel's own sum.
    pub resident: u64,
    /// The bytes of a page.
    pub page_size: u64,
    /// Whether threads of the program changed the memory while the dump read it.
    pub is_changing: bool,
    /// Bytes in memory that the program gave back with `MADV_FREE`.
    pub lazy_free: u64,
    /// The number of mappings that the program made and DMD did not record: their memory has no known owner.
    pub lost_mappings: u64,
    /// The rows, sorted descending; the difference is last. All rows add up to [`resident`](Self::resident). After
    /// [`since`](Self::since), the rows contain changes, sorted descending by absolute amount.
    pub rows: Vec<ResidentRow>,
    /// The functions with the most untouched bytes, sorted descending.
    pub untouched: Vec<UntouchedSite>,
    /// The resident bytes of the earlier dump, if this is a change.
    before: Option<u64>,
    is_estimated: bool,
    limit: usize,
    width: usize,
    colour: bool,
    verbose: bool,
}

/// The default maximum number of rows of the table.
const ROWS: usize = 12;

/// The maximum number of sites with untouched bytes.
const SITES: usize = 3;

/// The minimum number of untouched bytes of a site that the view shows. The view also leaves out sites of which less
/// than half is untouched.
const LEAST_UNTOUCHED: i128 = 1 << 20;

/// The name of the C library's allocator.
const C_HEAP: &str = "the C library's heap";

/// Whether the name is not a file's. The kernel names shared memory without a file after `/dev/zero`.
fn is_anonymous(name: &str) -> bool {
    name.is_empty() || name.starts_with('[') || name == "/dev/zero (deleted)"
}

/// The files that one function has mapped.
#[derive(Default)]
struct MappedFiles<'d> {
    names: BTreeSet<&'d str>,
    sums: [i128; 2],
}

impl MappedFiles<'_> {
    fn name(&self) -> String {
        let first = CleanText(self.names.first().copied().unwrap_or_default()).to_string();
        match self.names.len() {
            0 | 1 => format!("file {first}"),
            files => {
                let name = first.rsplit('/').next().unwrap_or(&first);
                format!("{} files such as {name}", number(files as i128))
            }
        }
    }
}

/// The names and the source lines of stacks.
struct SiteNames<'d> {
    dump: &'d Dump,
    workspace: Workspace,
    options: &'d ProgramOptions,
}

impl SiteNames<'_> {
    fn frames(&self, trace: DumpTraceId) -> Vec<CallFrame<'_>> {
        self.dump.trace(trace).iter().map(|id| self.dump.frames.get(*id)).collect()
    }

    fn site(&self, frames: &[CallFrame<'_>]) -> (String, String) {
        match FoldedStack::fold(frames, &self.options.folds).site().map(|site| &frames[site]) {
            Some(site) => (name(site, NAME, self.options), place(site, &self.workspace, self.options)),
            None => ("(no stack)".to_owned(), String::new()),
        }
    }
}

/// The maximum width of a function's name.
const NAME: usize = 48;

impl ResidentMemory {
    /// The resident memory of the process that wrote a dump. The symbols of the dump should be looked up.
    ///
    /// # Errors
    ///
    /// Returns an error with the reason if the dump does not have the memory of the process.
    pub fn new(dump: &Dump, options: &ProgramOptions) -> Result<Self, AnalyzeError> {
        let memory = dump.memory()?;
        let names = SiteNames {
            dump,
            workspace: Workspace::from_frames(dump.frames.ids().map(|id| dump.frames.get(id))),
            options,
        };
        let mut rows: BTreeMap<(ResidentOwner, String, String), [i128; 2]> = BTreeMap::new();
        let mut counted = 0;
        let mut add = |owner, name: String, place: String, [resident, swapped]: [i128; 2]| {
            counted += resident;
            let sums = rows.entry((owner, name, place)).or_default();
            *sums = [sums[0] + resident, sums[1] + swapped];
        };
        // The resident and swapped bytes of the allocators' areas, and of the blocks in them.
        let (is_sample, mut sampled) = (dump.sample.is_some(), [0_i128; 4]);
        let mut mapped: BTreeMap<String, MappedFiles<'_>> = BTreeMap::new();
        let has_name = |area: &MemoryArea| !area.name.is_empty();
        let threads = memory.areas.iter().filter(|area| area.owner == MemoryOwner::Stack).count();
        let mut binaries: Vec<&str> = memory
            .areas
            .iter()
            .filter(|area| area.owner == MemoryOwner::Binary && has_name(area))
            .map(|area| &*area.name)
            .collect();
        binaries.sort_unstable();
        binaries.dedup();
        let is_c_heap = |area: &MemoryArea| matches!(area.owner, MemoryOwner::Heap | MemoryOwner::Arena);
        let is_in_c_heap = memory.areas.iter().any(|area| is_c_heap(area) && area.blocks > 0);
        for area in &memory.areas {
            // In a sample, the estimated bytes of blocks may exceed the bytes of one area. They hardly exceed the bytes
            // of all areas of the allocators together.
            if is_sample && (area.owner.is_of_allocator() || area.blocks > 0) {
                let sums = [area.resident, area.swapped, area.live_resident, area.live_swapped];
                sampled.iter_mut().zip(sums).for_each(|(sum, bytes)| *sum += i128::from(bytes));
                continue;
            }
            let live = [area.live_resident.min(area.resident), area.live_swapped.min(area.swapped)];
            let rest = [area.resident - live[0], area.swapped - live[1]].map(i128::from);
            if area.blocks > 0 {
                let name = "live blocks".to_owned();
                add(ResidentOwner::LiveBlocks, name, String::new(), live.map(i128::from));
            }
            if rest == [0, 0] {
                continue;
            }
            let frames = names.frames(area.alloc);
            let (owner, name, place) = match area.owner {
                MemoryOwner::Heap | MemoryOwner::Arena => rest_of(C_HEAP),
                MemoryOwner::Chunk if is_in_c_heap => rest_of(C_HEAP),
                MemoryOwner::Chunk => rest_of("allocators"),
                // The row has the name of the file. Its place is the function that mapped the file.
                MemoryOwner::Mapping if !is_anonymous(&area.name) => {
                    let (site, place) = names.site(&frames);
                    let place = if place.is_empty() { site } else { format!("{site} {place}") };
                    let files = mapped.entry(place).or_default();
                    files.names.insert(&area.name);
                    files.sums = [files.sums[0] + rest[0], files.sums[1] + rest[1]];
                    continue;
                }
                MemoryOwner::Mapping => match allocator(&frames) {
                    Some(allocator) => rest_of(allocator),
                    None => {
                        let (name, place) = names.site(&frames);
                        (ResidentOwner::Mapping, name, place)
                    }
                },
                MemoryOwner::File if is_anonymous(&area.name) => {
                    (ResidentOwner::File, "shared memory".to_owned(), String::new())
                }
                MemoryOwner::File => {
                    (ResidentOwner::File, format!("file {}", CleanText(&area.name)), String::new())
                }
                MemoryOwner::Stack => {
                    let s = if threads == 1 { "" } else { "s" };
                    let name = format!("stacks of {} thread{s}", number(threads as i128));
                    (ResidentOwner::Stacks, name, String::new())
                }
                MemoryOwner::Binary => {
                    let name = match binaries.len() {
                        0 | 1 => "code and data of the program".to_owned(),
                        files => format!("code and data of {} programs and libraries", number(files as i128)),
                    };
                    (ResidentOwner::Binaries, name, String::new())
                }
                MemoryOwner::Dmd => (ResidentOwner::Dmd, "DMD itself".to_owned(), String::new()),
                MemoryOwner::Kernel => {
                    (ResidentOwner::Kernel, "pages of the kernel".to_owned(), String::new())
                }
                MemoryOwner::Unknown => {
                    let name = match &*area.name {
                        "" => "anonymous memory without a known owner".to_owned(),
                        name => format!("anonymous memory {}", CleanText(name)),
                    };
                    (ResidentOwner::Unknown, name, String::new())
                }
            };
            add(owner, name, place, rest);
        }
        if sampled[0] + sampled[1] > 0 {
            let [resident, swapped, ..] = sampled;
            let live = [sampled[2].min(resident), sampled[3].min(swapped)];
            add(ResidentOwner::LiveBlocks, "live blocks".to_owned(), String::new(), live);
            let (owner, name, place) = rest_of("allocators");
            add(owner, name, place, [resident - live[0], swapped - live[1]]);
        }
        for (place, files) in mapped {
            add(ResidentOwner::File, files.name(), place, files.sums);
        }
        let difference = i128::from(memory.resident) - counted;
        let mut rows: Vec<ResidentRow> = rows
            .into_iter()
            .map(|((owner, name, place), [resident, swapped])| ResidentRow {
                owner,
                name,
                place,
                resident,
                swapped,
            })
            .collect();
        rows.sort_by_key(|row| (Reverse(row.resident), Reverse(row.swapped)));
        if difference != 0 {
            rows.push(ResidentRow {
                owner: ResidentOwner::Difference,
                name: "changed while the dump read it".to_owned(),
                place: String::new(),
                resident: difference,
                swapped: 0,
            });
        }
        Ok(Self {
            resident: memory.resident,
            page_size: memory.page_size,
            is_changing: memory.is_changing,
            lazy_free: memory.areas.iter().map(|area| area.lazy_free).fold(0, u64::saturating_add),
            lost_mappings: memory.lost_mappings,
            rows,
            untouched: untouched(&names),
            before: None,
            is_estimated: dump.sample.is_some() || dump.blocks.iter().any(|block| block.sampled),
            limit: ROWS,
            width: options.width,
            colour: options.colour,
            verbose: options.verbose,
        })
    }

    /// The change since an earlier dump: each row has its growth, which may be negative. Rows without a change are left
    /// out.
    #[must_use]
    pub fn since(mut self, before: &Self) -> Self {
        let mut rows: BTreeMap<(ResidentOwner, String, String), [i128; 2]> = BTreeMap::new();
        for (sign, row) in before.rows.iter().map(|row| (-1, row)).chain(self.rows.iter().map(|row| (1, row)))
        {
            // Names of these rows contain a number that changes.
            let name = match row.owner {
                ResidentOwner::Stacks => "stacks of threads".to_owned(),
                ResidentOwner::Binaries => "code and data of programs and libraries".to_owned(),
                ResidentOwner::File if !row.place.is_empty() => "files".to_owned(),
                _ => row.name.clone(),
            };
            let sums = rows.entry((row.owner, name, row.place.clone())).or_default();
            *sums = [sums[0] + sign * row.resident, sums[1] + sign * row.swapped];
        }
        rows.retain(|_, sums| *sums != [0, 0]);
        let rows = rows.into_iter().map(|((owner, name, place), [resident, swapped])| ResidentRow {
            owner,
            name,
            place,
            resident,
            swapped,
        });
        self.rows = rows.collect();
        self.rows.sort_by_key(|row| (Reverse(row.resident.abs()), Reverse(row.swapped.abs())));
        self.before = Some(before.resident);
        self.untouched.clear();
        self
    }

    /// Sets the maximum number of rows of the table. Default: 12.
    #[must_use]
    pub fn limit(mut self, rows: usize) -> Self {
        self.limit = rows;
        self
    }
}

fn rest_of(allocator: &str) -> (ResidentOwner, String, String) {
    (ResidentOwner::AllocatorRest, format!("rest of {allocator}: free memory and own data"), String::new())
}

/// The functions with the most untouched bytes, if the dump has the resident bytes of its blocks.
fn untouched(names: &SiteNames<'_>) -> Vec<UntouchedSite> {
    if names.dump.check_resident().is_err() {
        return Vec::new();
    }
    let mut traces: BTreeMap<u32, BlockSums> = BTreeMap::new();
    for block in names.dump.blocks.iter().filter(|block| block.alloc != DumpTraceId::NONE) {
        traces.entry(block.alloc.0).or_default().add(BlockSums::from_block(block));
    }
    let mut sites: BTreeMap<(String, String), BlockSums> = BTreeMap::new();
    for (trace, sums) in traces.into_iter().filter(|(_, sums)| sums.untouched > 0) {
        let frames = names.frames(DumpTraceId(trace));
        sites.entry(names.site(&frames)).or_default().add(sums);
    }
    sites.retain(|_, sums| sums.untouched >= LEAST_UNTOUCHED && sums.untouched * 2 >= sums.usable());
    let mut sites: Vec<UntouchedSite> =
        sites.into_iter().map(|((name, place), sums)| UntouchedSite { name, place, sums }).collect();
    sites.sort_by_key(|site| Reverse(site.sums.untouched));
    sites.truncate(SITES);
    sites
}

/// The number of columns before a row's name, without a column for swapped bytes.
const AMOUNTS: usize = 24;
const SWAPPED: usize = 15;

impl Display for ResidentMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = ProgramOptions::new().width(self.width).colour(self.colour).verbose(self.verbose);
        let mut title = format!("Resident memory of the process: {}", bytes(self.resident.into()));
        if let Some(before) = self.before {
            title += &format!(", before {}", bytes(before.into()));
        }
        writeln!(f, "{}", bold(&title, &options))?;
        let signed = |amount: i128| {
            let plus = if self.before.is_some() && amount > 0 { "+" } else { "" };
            format!("{plus}{}", bytes(amount))
        };
        let has_swap = self.rows.iter().any(|row| row.swapped != 0);
        let amounts = |resident: i128, swapped: i128| {
            let swapped = match has_swap {
                true => format!("  {:>13}", signed(swapped)),
                false => String::new(),
            };
            let share =
                if self.before.is_some() { String::new() } else { percent(resident, self.resident.into()) };
            format!("{:>13}{swapped}  {share:>7}  ", signed(resident))
        };
        let heading = if has_swap { "        swapped" } else { "" };
        let [amount, share] = if self.before.is_some() { ["change", ""] } else { ["resident", "share"] };
        writeln!(f, "{}", bold(&format!("{amount:>13}{heading}  {share:>7}  owner"), &options))?;
        let (shown, further) = self.rows.split_at(self.shown());
        let before = AMOUNTS + if has_swap { SWAPPED } else { 0 };
        let mark = |row: &ResidentRow| match row.owner {
            ResidentOwner::LiveBlocks | ResidentOwner::AllocatorRest if self.is_estimated => " (estimated)",
            _ => "",
        };
        let names: Vec<String> = shown.iter().map(|row| format!("{}{}", row.name, mark(row))).collect();
        let places: Vec<String> = shown.iter().map(|row| row.place.clone()).collect();
        let tails = tails(&names, &places, self.width.saturating_sub(before), before + 4, &options);
        for ((row, name), tail) in shown.iter().zip(&names).zip(&tails) {
            writeln!(f, "{}{name}{tail}", amounts(row.resident, row.swapped))?;
        }
        if !further.is_empty() {
            let resident = further.iter().map(|row| row.resident).sum();
            let swapped = further.iter().map(|row| row.swapped).sum();
            let more = format!("({} more)", number(further.len() as i128));
            writeln!(f, "{}{}", amounts(resident, swapped), dim(&more, &options))?;
        }
        if self.lazy_free > 0 && self.before.is_none() {
            writeln!(
                f,
                "The program gave back {} of this memory with MADV_FREE; the system takes it when memory is short.",
                bytes(self.lazy_free.into())
            )?;
        }
        if self.is_changing {
            f.write_str("Other threads changed the memory during the read, so the rows may not add up.\n")?;
        }
        if self.lost_mappings > 0 {
            let lost = number(self.lost_mappings.into());
            writeln!(f, "DMD has no room for {lost} mappings of the program: they have no known owner.")?;
        }
        for site in &self.untouched {
            let UntouchedSite { name, place, sums } = site;
            let place = if place.is_empty() { String::new() } else { format!(" ({place})") };
            let touched = bytes(sums.usable() - sums.untouched);
            let blocks = crate::print::blocks(sums.num);
            writeln!(f, "`{name}`{place}: {} in {blocks}, {touched} touched.", bytes(sums.usable()))?;
        }
        Ok(())
    }
}

impl ResidentMemory {
    /// The number of rows to show. A single further row is shown, too.
    fn shown(&self) -> usize {
        if self.rows.len() <= self.limit.saturating_add(1) { self.rows.len() } else { self.limit }
    }

    /// The memory as JSON, with at most 1,000 rows. A last row has the sum of all further rows.
    pub fn json(&self) -> String {
        MemoryJson(self).to_string()
    }
}

/// The maximum number of rows in JSON.
const MOST_ROWS: usize = 1000;

struct MemoryJson<'m>(&'m ResidentMemory);

impl Display for MemoryJson<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ResidentMemory { page_size, resident, lazy_free, is_changing, rows, .. } = self.0;
        write!(f, "{{\"pageSize\": {page_size}, \"resident\": {resident}, \"lazyFree\": {lazy_free}, ")?;
        write!(f, "\"changing\": {is_changing}, \"rows\": [")?;
        let (shown, further) = rows.split_at(MOST_ROWS.min(rows.len()));
        let mut rows = shown.to_vec();
        if !further.is_empty() {
            rows.push(ResidentRow {
                owner: ResidentOwner::Unknown,
                name: format!("({} more)", further.len()),
                place: String::new(),
                resident: further.iter().map(|row| row.resident).sum(),
                swapped: further.iter().map(|row| row.swapped).sum(),
            });
        }
        list(f, &rows, "\n   ", |f, row| {
            let ResidentRow { owner, name, place, resident, swapped } = row;
            write!(f, "{{\"owner\": \"{}\", \"name\": {}", owner.name(), JsonString(name))?;
            if !place.is_empty() {
                write!(f, ", \"place\": {}", JsonString(place))?;
            }
            write!(f, ", \"resident\": {resident}, \"swapped\": {swapped}}}")
        })?;
        f.write_str("]}")
    }
}
