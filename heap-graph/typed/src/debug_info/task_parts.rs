//! The parts of a task of async-task (used by async-executor and smol). They follow each other in one block.

use super::{DEEPEST_ARRAY, DebugInfo, TypeId, TypeKind};

/// The parts of a task: the offset and the type of each part, and the total size in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskParts {
    pub(crate) header: TypeId,
    /// The offset of the state in the header.
    pub(crate) state: u64,
    pub(crate) schedule: (u64, TypeId),
    pub(crate) future: (u64, TypeId),
    pub(crate) bytes: u64,
}

impl DebugInfo {
    /// The parts to which `RawTask { header, schedule, future, output }` points. The future and the output share one
    /// place.
    pub(crate) fn task_parts(&self, raw: TypeId) -> Option<TaskParts> {
        let part = |name: &str| {
            let member = self.member(raw, name)?;
            let TypeKind::Pointer(of) = self.get(self.type_at(member.of)?).kind else { return None };
            self.type_at(of)
        };
        let (header, schedule, future, output) =
            (part("header")?, part("schedule")?, part("future")?, part("output")?);
        let align = |of| self.align(of, DEEPEST_ARRAY).max(1);
        let after = |end: u64, align: u64| end.checked_next_multiple_of(align);
        let schedule_at = after(self.size(header), align(schedule))?;
        let both = align(future).max(align(output));
        let future_at = after(schedule_at.checked_add(self.size(schedule))?, both)?;
        let bytes = future_at.checked_add(self.size(future).max(self.size(output)))?;
        let state = self.member(header, "state")?.offset;
        Some(TaskParts {
            header,
            state,
            schedule: (schedule_at, schedule),
            future: (future_at, future),
            bytes,
        })
    }
}
