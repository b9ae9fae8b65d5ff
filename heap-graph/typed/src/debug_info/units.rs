//! Reads all units of a file, on several threads.
//!
//! Each thread reads adjacent units. The results are joined in the order of the units, so they equal the results of
//! one thread. If a file is damaged or exceeds a limit, one thread reads it again, so that the error does not depend
//! on the number of threads.

use core::ops::Range;

use gimli::{DebugInfoOffset, Dwarf, Section as _, UnitHeader};

use super::read::{SectionSlice, UnitError, UnitReader};
use super::side_by_side::side_by_side;
use super::unit::UnitParser;
use crate::error::TypedError;

/// The smallest size of units, in bytes, for which a thread is worthwhile.
const WORTH_A_THREAD: usize = 1 << 18;

/// Reads all units on at most this many threads. With `only_rust`, reads only units in Rust.
pub(super) fn read_all<'s>(
    dwarf: &'s Dwarf<SectionSlice<'s>>,
    threads: usize,
    only_rust: bool,
) -> Result<UnitReader<'s>, TypedError> {
    let bytes = dwarf.debug_info.reader().len();
    let parts = threads.min(bytes / WORTH_A_THREAD);
    match (parts > 1).then(|| read_together(dwarf, parts, only_rust)).flatten() {
        Some(read) => Ok(read),
        None => read_alone(dwarf, only_rust),
    }
}

/// Reads all units in their order, on this thread.
fn read_alone<'s>(dwarf: &'s Dwarf<SectionSlice<'s>>, only_rust: bool) -> Result<UnitReader<'s>, TypedError> {
    let mut reading = UnitReader::for_part(dwarf, 1, only_rust);
    let mut units = dwarf.units();
    let mut last = 0;
    loop {
        let header = units.next().map_err(|error| TypedError::DebugInfo(last, error))?;
        let Some(header) = header else { return Ok(reading) };
        last = start(&header);
        read(&mut reading, header).map_err(|fault| match fault {
            UnitError::Gimli(error) => TypedError::DebugInfo(last, error),
            UnitError::Bound(bound) => TypedError::Bounded(last, bound),
        })?;
    }
}

/// Reads the units on several threads, in parts of about the same size. The limits of the parts add up to the limit
/// of one thread. So if each part stays within its limit, one thread would also stay within its limit. Returns `None`
/// if a part exceeds its limit or is damaged.
fn read_together<'s>(
    dwarf: &'s Dwarf<SectionSlice<'s>>,
    parts: usize,
    only_rust: bool,
) -> Option<UnitReader<'s>> {
    let read_part = |part: &Range<usize>| {
        let mut reading = UnitReader::for_part(dwarf, parts, only_rust);
        read_units(&mut reading, part.clone()).ok().map(|()| reading)
    };
    let read = side_by_side(&divided(dwarf, parts)?, read_part);
    let mut parts = read.into_iter().collect::<Option<Vec<_>>>()?.into_iter();
    let mut whole = parts.next()?;
    parts.try_for_each(|part| whole.append(part))?;
    Some(whole)
}

/// The start and the end of each part. A part contains the units that start in its share of the bytes. The function
/// stores the positions of the parts, not of the units, since a file may have a unit for each 11 bytes.
fn divided(dwarf: &Dwarf<SectionSlice<'_>>, parts: usize) -> Option<Vec<Range<usize>>> {
    let end = dwarf.debug_info.reader().len();
    let each = end / parts + 1;
    let mut starts = Vec::with_capacity(parts + 1);
    let mut units = dwarf.units();
    while let Some(header) = units.next().ok()? {
        let at = start(&header) as usize;
        while starts.len() < parts && at >= each * starts.len() {
            starts.push(at);
        }
    }
    starts.resize(parts + 1, end);
    Some(starts.windows(2).map(|part| part[0]..part[1]).collect())
}

/// Reads the units of a part.
fn read_units(reading: &mut UnitReader<'_>, part: Range<usize>) -> Result<(), UnitError> {
    let mut at = part.start;
    while at < part.end {
        let header = reading.dwarf.debug_info.header_from_offset(DebugInfoOffset(at))?;
        at += header.length_including_self();
        read(reading, header)?;
    }
    Ok(())
}

/// The offset of a unit's header.
fn start(header: &UnitHeader<SectionSlice<'_>>) -> u64 {
    header.debug_info_offset().map_or(0, |offset| offset.0 as u64)
}

fn read<'s>(reading: &mut UnitReader<'s>, header: UnitHeader<SectionSlice<'s>>) -> Result<(), UnitError> {
    reading.work(1)?;
    let abbreviations = reading.abbreviations(header.debug_abbrev_offset().0)?;
    UnitParser::new(reading, header, start(&header)).read(&abbreviations)
}
