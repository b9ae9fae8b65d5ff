//! Copies of function addresses that threads hold: code may keep the address of `free` in a register, or on the stack,
//! for as long as a function runs. After the references in objects have changed, no thread makes new copies of the old
//! addresses. So it is enough to stop each thread once, one after another, and to change the copies of this thread.

use core::time::Duration;
use std::io;
use std::time::Instant;

use crate::arch::{self, ThreadRegisters};
use crate::ptrace::TracedThread;
use crate::target::{TargetMapping, TargetProcess};

/// The maximum number of bytes of a stack that are searched, from the stack pointer on.
const MOST: u64 = 1 << 20;
/// The number of attempts to stop a thread. An attempt fails if a signal arrives.
const TRIES: usize = 5;

/// Replaces the old addresses by the new ones in all threads. Returns the number of replaced copies.
///
/// Also returns the longest time for which a thread was stopped.
pub(crate) fn replace(target: &TargetProcess, moved: &[(u64, u64)]) -> io::Result<(usize, Duration)> {
    let mappings = target.mappings()?;
    let (mut replaced, mut longest) = (0, Duration::ZERO);
    for thread in target.threads()? {
        let fails = |call| !arch::MAKES_CALLS_AGAIN && arch::is_not_restarted(call);
        if thread.is_stuck || thread.system_call.is_some_and(fails) {
            continue;
        }
        for _ in 0..TRIES {
            match TracedThread::stop(thread.number) {
                Ok(Some(stopped)) => {
                    let since = Instant::now();
                    replaced += replace_in(target, &stopped, &mappings, moved)?;
                    drop(stopped);
                    longest = longest.max(since.elapsed());
                    break;
                }
                // A signal arrives: try again.
                Ok(None) => {}
                // The thread has ended, or does not stop.
                Err(_) => break,
            }
        }
    }
    Ok((replaced, longest))
}

/// Replaces the addresses that one thread holds.
pub(crate) fn replace_in(
    target: &TargetProcess,
    thread: &TracedThread,
    mappings: &[TargetMapping],
    moved: &[(u64, u64)],
) -> io::Result<usize> {
    let new_address = |value: u64| moved.iter().find(|(old, _)| *old == value).map(|(_, new)| *new);
    let (lowest, highest) =
        moved.iter().fold((u64::MAX, 0), |(low, high), (old, _)| (low.min(*old), high.max(*old)));
    let mut registers: ThreadRegisters = thread.registers()?;
    let mut replaced = 0;
    arch::for_each_kept(&mut registers, |value| {
        if let Some(new) = new_address(*value) {
            *value = new;
            replaced += 1;
        }
    });
    if replaced > 0 {
        thread.set_registers(&registers)?;
    }
    let Some(UsedStack { start, bytes: stack, .. }) = UsedStack::read(target, &registers, mappings) else {
        return Ok(replaced);
    };
    for (number, word) in stack.as_chunks::<8>().0.iter().enumerate() {
        let value = u64::from_le_bytes(*word);
        if (lowest..=highest).contains(&value)
            && let Some(new) = new_address(value)
        {
            target.write(start + 8 * number as u64, &new.to_le_bytes())?;
            replaced += 1;
        }
    }
    Ok(replaced)
}

/// The used part of a thread's stack.
pub(crate) struct UsedStack {
    pub(crate) start: u64,
    pub(crate) bytes: Vec<u8>,
    /// Whether the part ends where the stack's mapping ends.
    pub(crate) is_whole: bool,
}

impl UsedStack {
    /// Reads at most [`MOST`] bytes. Returns `None` if the stack cannot be read.
    pub(crate) fn read(
        target: &TargetProcess,
        registers: &ThreadRegisters,
        mappings: &[TargetMapping],
    ) -> Option<Self> {
        let start = arch::stack_pointer(registers).checked_sub(arch::RED_ZONE)? & !7;
        let mapping = mappings.iter().find(|mapping| (mapping.start..mapping.end).contains(&start))?;
        let end = mapping.end.min(start + MOST);
        let mut bytes = vec![0; (end - start) as usize];
        target.read(start, &mut bytes).then_some(Self { start, bytes, is_whole: end == mapping.end })
    }
}
