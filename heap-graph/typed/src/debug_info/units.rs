//! Reads all units of a file.

use super::read::{Fault, Reading};
use super::unit::Unit;
use crate::error::TypedError;

/// Reads all units.
pub(super) fn read_all(reading: &mut Reading<'_>) -> Result<(), TypedError> {
    let mut units = reading.dwarf.units();
    let mut last = 0;
    loop {
        let header = units.next().map_err(|error| TypedError::DebugInfo(last, error))?;
        let Some(header) = header else { return Ok(()) };
        let base = header.debug_info_offset().map_or(0, |offset| offset.0 as u64);
        last = base;
        let result = reading
            .abbreviations(header.debug_abbrev_offset().0)
            .and_then(|abbreviations| Unit::new(reading, header, base).read(&abbreviations));
        result.map_err(|fault| match fault {
            Fault::Gimli(error) => TypedError::DebugInfo(base, error),
            Fault::Bound(bound) => TypedError::Bounded(base, bound),
        })?;
    }
}
