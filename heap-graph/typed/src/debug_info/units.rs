//! Reads all units of a file, on several threads.
//!
//! Each thread reads units that follow each other, and their results come together in the order of the units, which gives what one
//! thread gives. A file that is damaged or exceeds a limit is read again by one thread, so that an error does not depend
//! on the number of threads.

use core::ops::Range;

use gimli::{DebugInfoOffset, Dwarf, Section as _, UnitHeader};

use super::read::{SectionSlice, UnitError, UnitReader};
use super::side_by_side::side_by_side;
use super::unit::UnitParser;
use crate::error::TypedError;

/// The bytes of units that are worth a thread.
const WORTH_A_THREAD: usize = 1 << 18;

/// Reads all units on at most this many threads, or only those in Rust.
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

/// Reads all units in their order.
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

/// Reads the units in parts of about the same number of bytes, side by side. The limits of the parts are together those of
/// one thread, so what is read within them is also read by one thread; otherwise `None`.
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

/// Where each part begins and ends: it has the units that begin in its share of the bytes. A file may have a unit for each
/// 11 bytes, so no more than this is kept of them.
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

/// The offset of a unit.
fn start(header: &UnitHeader<SectionSlice<'_>>) -> u64 {
    header.debug_info_offset().map_or(0, |offset| offset.0 as u64)
}

fn read<'s>(reading: &mut UnitReader<'s>, header: UnitHeader<SectionSlice<'s>>) -> Result<(), UnitError> {
    reading.work(1)?;
    let abbreviations = reading.abbreviations(header.debug_abbrev_offset().0)?;
    UnitParser::new(reading, header, start(&header)).read(&abbreviations)
}
