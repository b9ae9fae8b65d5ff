//! Reads the keys `allocators` and `dropped`, which Firefox's dumps do not have. An element of `allocators`, one of its
//! texts, or the value of `dropped` is skipped if it has another type. Any other value of a wrong type is an error.

use std::io::Read;

use super::DumpReader;
use super::value::ValueKind;
use crate::dump::allocators::DumpAllocator;
use crate::error::AnalyzeError;

impl<R: Read> DumpReader<'_, R> {
    pub(super) fn allocators(&mut self) -> Result<(), AnalyzeError> {
        let mut allocators = Vec::new();
        self.elements("allocators", &mut |reader, _| {
            if !reader.next_is(b'{')? {
                return reader.skip(2);
            }
            let mut allocator = DumpAllocator::default();
            reader.members("allocators[]", &mut |reader, key| {
                let count = match key {
                    "functions" => &mut allocator.functions,
                    "references" => &mut allocator.references,
                    "name" | "place" | "obstacle" => {
                        if let ValueKind::Text(text) = reader.value(3)? {
                            match key {
                                "name" => allocator.name = text,
                                "place" => allocator.place = text,
                                _ => allocator.obstacle = Some(text),
                            }
                        }
                        return Ok(());
                    }
                    _ => return reader.skip(3),
                };
                *count = reader.count(3, || format!("allocators[].{key}"))?;
                Ok(())
            })?;
            allocators.push(allocator);
            reader.check_count(allocators.len())
        })?;
        self.allocators = allocators;
        Ok(())
    }

    pub(super) fn dropped(&mut self) -> Result<(), AnalyzeError> {
        if !self.next_is(b'{')? {
            return self.skip(1);
        }
        self.members("dropped", &mut |reader, key| {
            if key != "frees" {
                return reader.skip(2);
            }
            reader.unseen_frees = reader.count(2, || "dropped.frees".to_owned())?;
            Ok(())
        })
    }
}
