//! Reads the objects `peak` and `statistics`. Firefox's dumps do not have them.

use std::io::Read;

use super::value::{ValueKind, size};
use super::{DumpReader, missing, wrong};
use crate::dump::keys::KeyUse;
use crate::dump::peak::{DumpPeak, DumpStatistics, PeakStack};
use crate::dump::trace_id::DumpTraceId;
use crate::error::AnalyzeError;

impl<R: Read> DumpReader<'_, R> {
    pub(super) fn peak(&mut self) -> Result<(), AnalyzeError> {
        let mut peak = DumpPeak::default();
        let (mut bytes, mut blocks, mut within) = (None, None, None);
        self.members("peak", &mut |reader, key| {
            match key {
                "bytes" => bytes = Some(reader.count(2, || "peak.bytes".to_owned())?),
                "blocks" => blocks = Some(reader.count(2, || "peak.blocks".to_owned())?),
                "within" => within = Some(reader.count(2, || "peak.within".to_owned())?),
                "seconds" => peak.seconds = reader.seconds("peak.seconds")?,
                "measure" => {
                    peak.is_usable = matches!(reader.value(2)?, ValueKind::Text(text) if text == "usable");
                }
                "stacks" => peak.stacks = reader.peak_stacks()?,
                _ => reader.skip(2)?,
            }
            Ok(())
        })?;
        peak.bytes = bytes.ok_or_else(|| missing("peak.bytes"))?;
        peak.blocks = blocks.ok_or_else(|| missing("peak.blocks"))?;
        peak.within = within.ok_or_else(|| missing("peak.within"))?;
        let sum =
            |amount: fn(&PeakStack) -> u64| peak.stacks.iter().map(|s| u128::from(amount(s))).sum::<u128>();
        for (place, whole, sum) in [
            ("peak.bytes", peak.bytes, sum(|stack| stack.bytes)),
            ("peak.blocks", peak.blocks, sum(|stack| stack.num)),
        ] {
            if u128::from(whole) != sum {
                return Err(wrong(place, format!("{whole}, but the stacks have {sum} together")));
            }
        }
        self.peak = Some(peak);
        Ok(())
    }

    fn peak_stacks(&mut self) -> Result<Vec<PeakStack>, AnalyzeError> {
        let mut stacks = Vec::new();
        self.elements("peak.stacks", &mut |reader, index| {
            reader.check_count(index + 1)?;
            let place = |member: &str| format!("peak.stacks[{index}]{member}");
            let (mut alloc, mut num, mut bytes) = (DumpTraceId::NONE, 1, None);
            reader.members(&place(""), &mut |reader, key| {
                match key {
                    "alloc" => {
                        let ValueKind::Text(key) = reader.value(4)? else {
                            return Err(wrong(place(".alloc"), "not a string"));
                        };
                        alloc = DumpTraceId(reader.trace_keys.number(&key, || KeyUse::Peak(index as u32)));
                    }
                    "num" => num = reader.count(4, || place(".num"))?,
                    "bytes" => bytes = Some(reader.count(4, || place(".bytes"))?),
                    _ => reader.skip(4)?,
                }
                Ok(())
            })?;
            if num == 0 {
                return Err(wrong(place(".num"), "no blocks"));
            }
            let bytes = bytes.ok_or_else(|| missing(place(".bytes")))?;
            stacks.push(PeakStack { alloc, num, bytes });
            Ok(())
        })?;
        Ok(stacks)
    }

    pub(super) fn statistics(&mut self) -> Result<(), AnalyzeError> {
        let mut statistics = DumpStatistics::default();
        self.members("statistics", &mut |reader, key| {
            let count = match key {
                "allocations" => &mut statistics.allocations,
                "frees" => &mut statistics.frees,
                "reallocations" => &mut statistics.reallocations,
                "temporary" => &mut statistics.temporary,
                "seconds" => {
                    statistics.seconds = reader.seconds("statistics.seconds")?;
                    return Ok(());
                }
                _ => return reader.skip(2),
            };
            *count = reader.count(2, || format!("statistics.{key}"))?;
            Ok(())
        })?;
        self.statistics = Some(statistics);
        Ok(())
    }

    pub(super) fn count(&mut self, depth: u32, place: impl FnOnce() -> String) -> Result<u64, AnalyzeError> {
        self.window.take(|scan| size(scan, depth))?.map_err(|how| wrong(place(), how))
    }

    fn seconds(&mut self, place: &str) -> Result<f64, AnalyzeError> {
        let ValueKind::Number(number) = self.value(2)? else { return Err(wrong(place, "not a number")) };
        match number.parse::<f64>() {
            Ok(seconds) if seconds.is_finite() && seconds >= 0.0 => Ok(seconds),
            _ => Err(wrong(place, "not a time")),
        }
    }
}
