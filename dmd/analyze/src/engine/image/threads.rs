//! The state of a process's threads when the process was copied.

use std::collections::HashMap;

use dmd_format::tables::{RECORDED, THREAD, THREAD_NAME};

use super::StoppedThread;
use super::header::TableHeader;
use super::memory::{ImageMemory, damaged, u64_at};
use crate::error::AnalyzeError;

/// The maximum number of rows of each kind. The engine's tables have no room for more.
const MOST: u64 = 1 << 20;

/// The offsets from the thread pointer at which glibc and musl store the system's thread number, on x86-64.
const NUMBERS: [u64; 2] = [720, 48];

pub(super) fn all(
    memory: &ImageMemory<'_>,
    header: &TableHeader,
) -> Result<Vec<StoppedThread>, AnalyzeError> {
    if header.threads == 0 {
        return Ok(Vec::new());
    }
    let counts = memory.words(header.threads, 2)?;
    if counts.iter().any(|count| *count > MOST) {
        return Err(damaged("there are too many threads"));
    }
    let [listed, recorded] = [counts[0] as usize * THREAD, counts[1] as usize * RECORDED];
    let mut rows = vec![0; listed + recorded];
    memory.fill(header.threads.wrapping_add(16), &mut rows)?;
    let known = |word: u64| (word != 0).then_some(word);
    let of_system = |row: &[u8]| {
        let name = row[THREAD - THREAD_NAME..].split(|byte| *byte == 0).next().unwrap_or_default();
        StoppedThread {
            number: known(u64_at(row, 0)),
            name: String::from_utf8_lossy(name).into_owned(),
            stack_pointer: known(u64_at(row, 8)),
            code: known(u64_at(row, 16)),
            ..StoppedThread::default()
        }
    };
    let mut threads: Vec<StoppedThread> = rows[..listed].chunks_exact(THREAD).map(of_system).collect();
    let mut by_number = HashMap::new();
    for (index, thread) in threads.iter().enumerate() {
        if let Some(number) = thread.number {
            by_number.entry(number).or_insert(index);
        }
    }
    let mut recorded = rows[listed..].chunks_exact(RECORDED).map(|row| [0, 8, 16].map(|at| u64_at(row, at)));
    while let Some([pointer, count, _]) = recorded.next() {
        let frames: Vec<[u64; 3]> = recorded.by_ref().take(usize::try_from(count).unwrap_or(0)).collect();
        let number = |at: &u64| {
            let mut word = [0; 4];
            let filled = memory.read(pointer.wrapping_add(*at), &mut word).unwrap_or(0);
            (filled == word.len()).then_some(u64::from(u32::from_le_bytes(word)))
        };
        let known = NUMBERS.iter().filter_map(number).filter_map(|number| by_number.get(&number)).min();
        let thread = match known {
            Some(thread) => &mut threads[*thread],
            None => {
                threads.push(StoppedThread::default());
                let last = threads.len() - 1;
                &mut threads[last]
            }
        };
        thread.thread_pointer = Some(pointer);
        thread.stack_pointer = thread.stack_pointer.or(frames.last().map(|[_, stack, _]| *stack));
        let lowest = thread.stack_pointer.unwrap_or(0);
        for [code, stack, return_at] in frames.into_iter().filter(|[_, stack, _]| *stack >= lowest) {
            thread.frames.push((code, stack));
            // `return_at` is 0 if it is unknown. On x86-64, a call stores the return address below the caller's stack
            // pointer. On other processors, the comparison fails, and the loop ends.
            let return_at = if return_at == 0 { stack.saturating_sub(8) } else { return_at };
            if return_at < lowest || memory.words(return_at, 1).is_ok_and(|word| word != [code]) {
                break;
            }
        }
    }
    Ok(threads)
}
