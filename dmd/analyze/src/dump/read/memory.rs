//! Reads the object `mappings`. Firefox's dumps do not have it.

use std::io::Read;

use super::value::{ValueKind, address};
use super::{DumpReader, missing, wrong};
use crate::dump::keys::KeyUse;
use crate::dump::memory::{MemoryArea, MemoryByOwner, MemoryOwner};
use crate::dump::trace_id::DumpTraceId;
use crate::error::AnalyzeError;

impl<R: Read> DumpReader<'_, R> {
    /// Reads the object `mappings`: a list of areas, or the reason why the process could not read its memory. The
    /// reader skips a value that is not an object. In the object, only `changing` and `unreadable` may have another
    /// type.
    pub(super) fn memory(&mut self) -> Result<(), AnalyzeError> {
        self.memory = None;
        if !self.next_is(b'{')? {
            return self.skip(1);
        }
        let mut memory = MemoryByOwner::default();
        let (mut page, mut resident, mut areas, mut reason) = (None, None, None, None);
        self.members("mappings", &mut |reader, key| {
            match key {
                "pageSize" => page = Some(reader.count(2, || "mappings.pageSize".to_owned())?),
                "resident" => resident = Some(reader.count(2, || "mappings.resident".to_owned())?),
                "changing" => memory.is_changing = matches!(reader.value(2)?, ValueKind::Truth(true)),
                "lost" => memory.lost_mappings = reader.count(2, || "mappings.lost".to_owned())?,
                "list" => areas = Some(reader.areas()?),
                "unreadable" => {
                    if let ValueKind::Text(text) = reader.value(2)? {
                        reason = Some(text);
                    }
                }
                _ => reader.skip(2)?,
            }
            Ok(())
        })?;
        if let Some(reason) = reason {
            self.memory = Some(Err(reason));
            return Ok(());
        }
        memory.page_size = page.ok_or_else(|| missing("mappings.pageSize"))?;
        if !memory.page_size.is_power_of_two() {
            return Err(wrong("mappings.pageSize", format!("{}, not a power of two", memory.page_size)));
        }
        memory.resident = resident.ok_or_else(|| missing("mappings.resident"))?;
        memory.areas = areas.ok_or_else(|| missing("mappings.list"))?;
        self.memory = Some(Ok(memory));
        Ok(())
    }

    fn areas(&mut self) -> Result<Vec<MemoryArea>, AnalyzeError> {
        let mut areas: Vec<MemoryArea> = Vec::new();
        let mut end = 0;
        self.elements("mappings.list", &mut |reader, index| {
            reader.check_count(2 * (index + 1))?;
            let place = |member: &str| format!("mappings.list[{index}]{member}");
            let mut area = MemoryArea::default();
            let (mut start, mut bytes) = (None, None);
            reader.members(&place(""), &mut |reader, key| {
                let amount = match key {
                    "start" | "owner" | "name" | "access" | "alloc" => {
                        let ValueKind::Text(text) = reader.value(4)? else {
                            return Err(wrong(place(&format!(".{key}")), "not a string"));
                        };
                        match key {
                            "start" => {
                                let parsed = address(&text).map_err(|how| wrong(place(".start"), how))?;
                                start = Some(parsed);
                            }
                            // A later version may know more owners.
                            "owner" => {
                                let known = MemoryOwner::ALL.into_iter().find(|owner| owner.name() == text);
                                area.owner = known.unwrap_or_default();
                            }
                            "name" => area.name = text,
                            "access" => area.access = text,
                            _ => {
                                let number =
                                    reader.trace_keys.number(&text, || KeyUse::Mapping(index as u32));
                                area.alloc = DumpTraceId(number);
                            }
                        }
                        return Ok(());
                    }
                    "bytes" => {
                        bytes = Some(reader.count(4, || place(".bytes"))?);
                        return Ok(());
                    }
                    "resident" => &mut area.resident,
                    "swapped" => &mut area.swapped,
                    "lazyFree" => &mut area.lazy_free,
                    "blocks" => &mut area.blocks,
                    "live" => &mut area.live,
                    "liveResident" => &mut area.live_resident,
                    "liveSwapped" => &mut area.live_swapped,
                    _ => return reader.skip(4),
                };
                *amount = reader.count(4, || place(&format!(".{key}")))?;
                Ok(())
            })?;
            area.start = start.ok_or_else(|| missing(place(".start")))?;
            area.bytes = bytes.ok_or_else(|| missing(place(".bytes")))?;
            if area.start < end {
                return Err(wrong(place(".start"), "inside of the area before it"));
            }
            end = match area.start.checked_add(area.bytes) {
                Some(end) => end,
                None => return Err(AnalyzeError::Overflow(place(".bytes"))),
            };
            areas.push(area);
            Ok(())
        })?;
        Ok(areas)
    }
}
