//! Merges the events of all threads into one order.

use core::cmp::Reverse;
use std::collections::BinaryHeap;
use std::vec;

use dmd_format::recording::{BlockAction, EventDecoder};

use super::event::{EventKind, TimedEvent};
use super::index::{FileWarnings, ThreadIndex};
use super::source::RecordingSource;
use crate::error::AnalyzeError;

/// The sort key of an event: its tick. At equal ticks, ends come before begins.
fn key(event: &TimedEvent) -> u64 {
    let begins = matches!(event.kind, EventKind::Begin(_) | EventKind::Back(_));
    event.tick.saturating_mul(2).saturating_add(u64::from(begins))
}

/// The next events of a thread, from one chunk.
#[derive(Debug, Default)]
struct ThreadCursor {
    events: vec::IntoIter<TimedEvent>,
    next: Option<TimedEvent>,
    /// The number of chunks read so far.
    read: usize,
    /// The number of events in the chunk.
    length: usize,
}

/// Merges threads. It keeps one chunk in memory for each thread that has events at the current time.
#[derive(Debug)]
pub(crate) struct ThreadMerge<'r> {
    source: &'r mut RecordingSource,
    warnings: &'r mut FileWarnings,
    threads: &'r [ThreadIndex],
    start: u64,
    cursors: Vec<ThreadCursor>,
    /// The key of each thread's next event, or a smaller key.
    waiting: BinaryHeap<Reverse<(u64, u32)>>,
    /// The thread whose events are next, while their keys are at most `bound`.
    current: Option<u32>,
    bound: u64,
    kept: usize,
    max_kept: usize,
    /// The highest position in the file of a chunk that was read.
    pub(crate) position: u64,
}

impl<'r> ThreadMerge<'r> {
    pub(crate) fn new(
        source: &'r mut RecordingSource,
        warnings: &'r mut FileWarnings,
        threads: &'r [ThreadIndex],
        start: u64,
        max_kept: usize,
    ) -> Self {
        let first = |(index, thread): (usize, &ThreadIndex)| {
            thread.chunks.first().map(|(tick, _)| Reverse((tick.saturating_mul(2), index as u32)))
        };
        Self {
            waiting: threads.iter().enumerate().filter_map(first).collect(),
            cursors: threads.iter().map(|_| ThreadCursor::default()).collect(),
            source,
            warnings,
            threads,
            start,
            current: None,
            bound: 0,
            kept: 0,
            max_kept,
            position: 0,
        }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<TimedEvent>, AnalyzeError> {
        if let Some(current) = self.current {
            let cursor = &mut self.cursors[current as usize];
            if let Some(event) = cursor.next
                && key(&event) <= self.bound
            {
                cursor.next = cursor.events.next();
                return Ok(Some(event));
            }
        }
        self.next_of_another()
    }

    fn next_of_another(&mut self) -> Result<Option<TimedEvent>, AnalyzeError> {
        loop {
            if let Some(current) = self.current.take() {
                let cursor = &mut self.cursors[current as usize];
                let next = match cursor.next {
                    Some(event) => Some(key(&event)),
                    None => {
                        self.kept -= cursor.length;
                        cursor.length = 0;
                        cursor.events = vec::IntoIter::default();
                        let chunk = self.threads[current as usize].chunks.get(cursor.read);
                        chunk.map(|(tick, _)| tick.saturating_mul(2))
                    }
                };
                self.waiting.extend(next.map(|key| Reverse((key, current))));
            }
            let Some(Reverse((_, thread))) = self.waiting.pop() else { return Ok(None) };
            if self.cursors[thread as usize].next.is_none() {
                self.read(thread as usize)?;
            }
            self.current = Some(thread);
            self.bound = self.waiting.peek().map_or(u64::MAX, |Reverse((key, _))| *key);
            let cursor = &mut self.cursors[thread as usize];
            if let Some(event) = cursor.next
                && key(&event) <= self.bound
            {
                cursor.next = cursor.events.next();
                return Ok(Some(event));
            }
        }
    }

    /// Reads the next chunk of a thread.
    fn read(&mut self, thread: usize) -> Result<(), AnalyzeError> {
        let cursor = &mut self.cursors[thread];
        let Some((_, offset)) = self.threads[thread].chunks.get(cursor.read).copied() else { return Ok(()) };
        cursor.read += 1;
        self.position = self.position.max(offset);
        let Some(payload) = self.source.payload(offset)? else {
            self.warnings
                .add(format!("the chunk at byte {offset} has changed while the file was being read"));
            return Ok(());
        };
        let mut events = Vec::with_capacity(payload.len() / 4);
        match EventDecoder::new(&payload) {
            Err(error) => self.warnings.malformed(offset, error),
            Ok(decoder) => {
                for event in decoder {
                    match event {
                        Err(error) => self.warnings.malformed(offset, error),
                        Ok(event) => {
                            let kind = match event.what {
                                BlockAction::Begin(block) => EventKind::Begin(block),
                                BlockAction::End(_) => EventKind::End,
                                BlockAction::EndByMove(_) => EventKind::EndByMove,
                                BlockAction::Back(block) => EventKind::Back(block),
                            };
                            let tick = event.tick.saturating_sub(self.start);
                            events.push(TimedEvent {
                                tick,
                                thread: thread as u32,
                                address: event.address,
                                kind,
                            });
                        }
                    }
                }
            }
        }
        cursor.length = events.len();
        self.kept += cursor.length;
        if self.kept > self.max_kept {
            return Err(AnalyzeError::TooManyEntries(self.max_kept));
        }
        cursor.events = events.into_iter();
        cursor.next = cursor.events.next();
        Ok(())
    }
}
