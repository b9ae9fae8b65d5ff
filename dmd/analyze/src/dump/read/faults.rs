//! Reads `reportFaults`: reported pointers that do not point to the start of a live block.

use std::io::Read;

/// The maximum number of faults in a dump. Views print a paragraph for each.
const MOST_FAULTS: usize = 1_000;

use super::DumpReader;
use super::value::ValueKind;
use crate::dump::Dump;
use crate::dump::faulty_pointer::{FaultyPointer, ReportFaultKind};
use crate::dump::trace_id::DumpTraceId;
use crate::error::AnalyzeError;

/// A fault as the file writes it. Its frames are texts, not keys.
#[derive(Default)]
pub(super) struct WrittenFault {
    kind: Option<ReportFaultKind>,
    address: u64,
    reporter: Option<u32>,
    frames: Vec<String>,
}

impl<R: Read> DumpReader<'_, R> {
    /// Reads `reportFaults`, a key that Firefox's dumps do not have. The reader skips faults of an unknown kind, and
    /// values of another type.
    pub(super) fn faults(&mut self) -> Result<(), AnalyzeError> {
        self.faults.clear();
        if !self.next_is(b'[')? {
            return self.skip(1);
        }
        let mut frames = 0;
        self.elements("reportFaults", &mut |reader, _| {
            if !reader.next_is(b'{')? {
                return reader.skip(2);
            }
            let mut fault = WrittenFault::default();
            reader.members("reportFaults[]", &mut |reader, key| {
                if key == "frames" && reader.next_is(b'[')? {
                    fault.frames.clear();
                    return reader.elements("reportFaults[].frames", &mut |reader, _| {
                        if let ValueKind::Text(frame) = reader.value(4)? {
                            fault.frames.push(frame);
                        }
                        reader.check_count(frames + fault.frames.len())
                    });
                }
                match (key, reader.value(3)?) {
                    ("kind", ValueKind::Text(name)) => fault.kind = ReportFaultKind::named(&name),
                    ("addr", ValueKind::Text(address)) => {
                        fault.address = u64::from_str_radix(&address, 16).unwrap_or_default();
                    }
                    ("path", ValueKind::Number(number)) => fault.reporter = number.parse().ok(),
                    _ => {}
                }
                Ok(())
            })?;
            frames += 1 + fault.frames.len();
            if fault.kind.is_some() && reader.faults.len() < MOST_FAULTS {
                reader.faults.push(fault);
            }
            reader.check_count(frames)
        })
    }
}

/// Adds the faults to the dump, and their stacks to its traces.
pub(super) fn add(dump: &mut Dump, faults: Vec<WrittenFault>) {
    for WrittenFault { kind, address, reporter, frames } in faults {
        let Some(kind) = kind else { continue };
        let start = dump.calls.len();
        let (Ok(first), Ok(end)) = (u32::try_from(start), u32::try_from(start + frames.len())) else {
            return;
        };
        for frame in &frames {
            dump.calls.push(dump.frames.read(frame));
        }
        let trace = DumpTraceId(dump.traces.len() as u32);
        dump.traces.push(first..end);
        dump.faults.push(FaultyPointer { kind, address, reporter: reporter.unwrap_or(u32::MAX), trace });
    }
}
