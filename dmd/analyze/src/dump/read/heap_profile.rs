//! Reads heap profiles of jemalloc and gperftools as dumps of mode live.
//!
//! jemalloc writes `heap_v2/RATE`, the sums of all stacks, and for each stack a line of addresses (`@ 0x.. 0x..`) and
//! lines of sums: `t*: OBJECTS: BYTES [..]` for all threads, `t1: ..` for one thread. gperftools writes
//! `heap profile: ..` and one line for each stack. Both write the memory map of the process at the end. All addresses
//! are return addresses.
//!
//! A sample's sums are estimated as in jeprof: a stack of n recorded objects with b bytes counts
//! `1 / (1 - exp(-(b / n) / RATE))` times.

use std::collections::BTreeMap;
use std::io::Read;

use dmd_format::Mode;
use memory_report::reader::TextWindow;

use super::{DumpReadOptions, wrong};
use crate::dump::DumpBuilder;
use crate::dump::frame::CallFrame;
use crate::dump::{Dump, LoadedModule};
use crate::error::AnalyzeError;

/// The starts of heap profiles.
const STARTS: [&str; 2] = ["heap_v2/", "heap profile:"];

/// The line before the memory map.
const MAPPINGS: &str = "MAPPED_LIBRARIES:";

/// The maximum number of frames in a stack.
const MOST_FRAMES: usize = 1000;

/// The lowest start of a program that the kernel chooses itself. A file below this address is at the addresses to
/// which it was linked.
const LOWEST_CHOSEN: u64 = 1 << 32;

/// Whether a file that starts with these bytes is a heap profile of jemalloc or gperftools.
pub fn is_heap_profile(start: &[u8]) -> bool {
    STARTS.iter().any(|known| start.starts_with(known.as_bytes()))
}

/// How the amounts of a profile were sampled.
#[derive(Clone, Copy)]
enum Sampling {
    /// The profile has every object.
    All,
    /// Versions 1 and 2 of gperftools, and jemalloc: one object for each RATE allocated bytes.
    Scaled(u64),
    /// The first version: objects smaller than half of the rate count as objects of this size.
    Least(f64),
}

impl Sampling {
    /// The number of objects that each of `objects` recorded objects with a sum of `bytes` bytes represents.
    fn weight(self, objects: u64, bytes: u64) -> f64 {
        let mean = bytes as f64 / objects as f64;
        match self {
            Self::Scaled(rate) if rate > 0 => 1.0 / -(-mean.max(1.0) / rate as f64).exp_m1(),
            Self::Least(least) if mean > 0.0 && mean < least => least / mean,
            _ => 1.0,
        }
    }
}

/// The recorded objects of a stack.
#[derive(Clone, Copy, Default)]
struct Recorded {
    objects: u64,
    bytes: u64,
}

impl Recorded {
    /// Parses `OBJECTS: BYTES [OBJECTS: BYTES]`. The values in brackets count freed objects, too, so they are not used.
    fn parse(text: &str) -> Result<Self, String> {
        let (objects, rest) = text.split_once(':').ok_or("not `OBJECTS: BYTES`")?;
        let bytes = rest.split('[').next().unwrap_or_default();
        let number = |text: &str| {
            let text = text.trim();
            text.parse().map_err(|_| format!("'{}' is not a number below 2^64", super::shorten(text)))
        };
        Ok(Self { objects: number(objects)?, bytes: number(bytes)? })
    }
}

/// The stacks of a profile, as addresses.
struct ProfileStacks<'o> {
    options: &'o DumpReadOptions,
    sampling: Sampling,
    addresses: Vec<u64>,
    /// For each stack the end of its addresses, and its objects.
    stacks: Vec<(usize, Recorded)>,
}

impl ProfileStacks<'_> {
    fn add(&mut self, frames: usize, recorded: Recorded) -> Result<(), String> {
        if recorded.objects == 0 {
            // A stack without live objects.
            self.addresses.truncate(self.addresses.len() - frames);
            return Ok(());
        }
        self.stacks.push((self.addresses.len(), recorded));
        Ok(())
    }

    /// Adds the addresses of a line, innermost first. Returns their number.
    fn add_addresses(&mut self, text: &str) -> Result<usize, String> {
        let start = self.addresses.len();
        for word in text.split_ascii_whitespace() {
            let digits = word.strip_prefix("0x");
            let address = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
            self.addresses
                .push(address.ok_or_else(|| format!("'{}' is not an address", super::shorten(word)))?);
            if self.addresses.len() - start > MOST_FRAMES {
                return Err(format!("more than {MOST_FRAMES} frames"));
            }
        }
        Ok(self.addresses.len() - start)
    }

    fn check_count(&self) -> Result<(), AnalyzeError> {
        // An address may become a frame of its own.
        let entries = 3 * self.stacks.len() + 2 * self.addresses.len();
        if entries > self.options.max_entries {
            return Err(AnalyzeError::TooManyEntries(self.options.max_entries));
        }
        Ok(())
    }
}

/// Reads a profile. The window is at the profile's start.
pub(super) fn read<R: Read>(
    window: &mut TextWindow<R>,
    options: &DumpReadOptions,
) -> Result<Dump, AnalyzeError> {
    let mut number = 0_u64;
    let mut next = |number: &mut u64| -> Result<Option<String>, AnalyzeError> {
        *number += 1;
        Ok(window.take(|scan| Ok(scan.line()?.map(str::to_owned)))?)
    };
    let at = |number: u64| move |how: String| wrong(format!("line {number}"), how);
    let first = next(&mut number)?.unwrap_or_default();
    if !is_heap_profile(first.trim_start().as_bytes()) {
        return Err(AnalyzeError::NotADump);
    }
    let sampling = header(first.trim()).map_err(at(number))?;
    let mut profile = ProfileStacks { options, sampling, addresses: Vec::new(), stacks: Vec::new() };
    // The number of frames of the last stack whose sums are not read yet.
    let mut open = None;
    let mut mappings = None;
    let mut is_cut = false;
    while let Some(line) = next(&mut number)? {
        // A file without a line feed at its end is cut, and the last number may lack digits.
        let Some(line) = line.strip_suffix('\n').map(str::trim) else { break };
        if line == MAPPINGS {
            let map = mappings.insert(ProfileMappings::default());
            while let Some(line) = next(&mut number)? {
                map.add(&line);
                if map.ranges.len() > options.max_entries {
                    return Err(AnalyzeError::TooManyEntries(options.max_entries));
                }
            }
            break;
        }
        let read = if let Some(addresses) = line.strip_prefix('@') {
            is_cut |= close(&mut profile, open.take());
            profile.add_addresses(addresses).map(|frames| open = Some(frames))
        } else if let Some(sums) = line.strip_prefix("t*:") {
            match (Recorded::parse(sums), open.take()) {
                (Ok(recorded), Some(frames)) => profile.add(frames, recorded),
                // The sum of all stacks, as jemalloc sampled it: the sums of the stacks are corrected already.
                (Ok(_), None) => Ok(()),
                (Err(how), _) => Err(how),
            }
        } else if line.starts_with(|first: char| first.is_ascii_digit()) {
            match line.split_once('@') {
                // gperftools: `OBJECTS: BYTES [OBJECTS: BYTES] @ 0x.. 0x..`
                Some((sums, addresses)) => Recorded::parse(sums).and_then(|recorded| {
                    let frames = profile.add_addresses(addresses)?;
                    profile.add(frames, recorded)
                }),
                None => Err("not a stack".to_owned()),
            }
        } else {
            // A thread's part of the sums, a blank line, or a line of a later version.
            Ok(())
        };
        read.map_err(at(number))?;
        profile.check_count()?;
    }
    is_cut |= close(&mut profile, open);
    dump(profile, mappings, is_cut)
}

/// Removes the addresses of a stack whose sums are missing. Returns whether there was such a stack.
fn close(profile: &mut ProfileStacks<'_>, open: Option<usize>) -> bool {
    if let Some(frames) = open {
        profile.addresses.truncate(profile.addresses.len() - frames);
    }
    open.is_some()
}

/// Parses the first line. gperftools also writes the sum of all stacks into it.
fn header(line: &str) -> Result<Sampling, String> {
    let rate = |text: &str| {
        let text = text.trim();
        text.parse::<u64>().map_err(|_| format!("the rate '{}' is not a number", super::shorten(text)))
    };
    if let Some(text) = line.strip_prefix("heap_v2/") {
        return Ok(Sampling::Scaled(rate(text)?));
    }
    let sums = line.strip_prefix("heap profile:").unwrap_or(line);
    let (sums, kind) = sums.split_once('@').unwrap_or((sums, ""));
    Recorded::parse(sums)?;
    Ok(match kind.trim().split_once('/') {
        Some(("heap_v2", text)) => Sampling::Scaled(rate(text)?),
        Some(("heap", text)) => Sampling::Least(rate(text)? as f64 / 2.0),
        _ => Sampling::All,
    })
}

/// A mapped file: the range of its addresses, and the index of its module.
struct ProfiledRange {
    end: u64,
    module: usize,
}

/// The memory map of the profiled process.
#[derive(Default)]
struct ProfileMappings {
    /// The ranges by their first addresses.
    ranges: BTreeMap<u64, ProfiledRange>,
    modules: Vec<LoadedModule>,
}

impl ProfileMappings {
    /// Adds a line of `/proc/PID/maps`. Ignores memory without a file, and lines of another form.
    fn add(&mut self, line: &str) -> Option<()> {
        let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
        let (range, rest) = line.trim_start().split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let (start, end) = (hexadecimal(start)?, hexadecimal(end)?);
        // The access rights, the offset, the device, the inode, and the path, which may contain blanks.
        let mut fields = rest.trim_start().splitn(5, ' ');
        let offset = hexadecimal(fields.nth(1)?)?;
        let path = fields.nth(2)?.trim();
        if !path.starts_with('/') || end <= start {
            return None;
        }
        // Linux maps the parts of a file one after the other.
        if self.modules.last().is_none_or(|module| module.path != path) {
            let bias = if start < LOWEST_CHOSEN { 0 } else { start.wrapping_sub(offset) };
            self.modules.push(LoadedModule {
                path: path.to_owned(),
                bias: Some(bias),
                ..LoadedModule::default()
            });
        }
        self.ranges.insert(start, ProfiledRange { end, module: self.modules.len() - 1 });
        Some(())
    }

    /// The module with the code at an address, and the code's address in the module's file.
    fn find(&self, address: u64) -> Option<(&str, u64)> {
        let (_, range) =
            self.ranges.range(..=address).next_back().filter(|(_, range)| address < range.end)?;
        let module = &self.modules[range.module];
        Some((&module.path, address.wrapping_sub(module.bias?)))
    }
}

/// Makes the dump. A profile without a memory map is cut, because the map is its last part.
fn dump(
    profile: ProfileStacks<'_>,
    mappings: Option<ProfileMappings>,
    is_cut: bool,
) -> Result<Dump, AnalyzeError> {
    let ProfileStacks { sampling, addresses, stacks, .. } = profile;
    let mut builder = DumpBuilder::new(Mode::Live);
    builder.cut(is_cut || mappings.is_none());
    match sampling {
        Sampling::Scaled(mean) if mean > 0 => builder.sample(mean),
        Sampling::Least(least) if least > 0.0 => builder.sample((least * 2.0) as u64),
        _ => {}
    }
    let mappings = mappings.unwrap_or_default();
    let mut start = 0;
    for (end, recorded) in stacks {
        // The address in front of the return address belongs to the call.
        let addresses = addresses[start..end].iter().map(|address| address.saturating_sub(1));
        let unknown: Vec<String> = addresses.clone().map(|address| format!("{address:#x}")).collect();
        let stack =
            builder.stack(addresses.zip(&unknown).map(|(address, unknown)| match mappings.find(address) {
                Some((module, offset)) => {
                    CallFrame { module: Some(module), offset: Some(offset), ..CallFrame::default() }
                }
                None => CallFrame { function: Some(unknown), ..CallFrame::default() },
            }));
        start = end;
        let weight = sampling.weight(recorded.objects, recorded.bytes);
        builder.blocks(stack, recorded.objects, recorded.bytes, weight);
    }
    for module in mappings.modules {
        builder.module(module);
    }
    builder.finish()
}
