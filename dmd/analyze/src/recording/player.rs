//! Replays a recording up to a time.

use dmd_format::recording::LiveDecoder;

use super::clock::TickClock;
use super::event::TimedEvent;
use super::index::RecordingIndex;
use super::merge::ThreadMerge;
use super::replay::{HeapReplay, ReplayObserver};
use super::source::RecordingSource;
use crate::error::AnalyzeError;

/// The end of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplayEnd {
    End,
    /// Replay up to the last event that is not after this tick.
    Tick(u64),
    /// Replay this many events.
    Event(u64),
}

/// A function that receives the progress: the bytes read so far, and all bytes.
pub(crate) type ReplayProgress = Box<dyn FnMut(u64, u64) + Send>;

/// The number of events between two calls of the progress function.
const STEP: u64 = 1 << 16;

/// A recording during a replay.
pub(crate) struct RecordingPlayer<'r> {
    merge: ThreadMerge<'r>,
    pub(crate) replay: HeapReplay,
    pub(crate) clock: &'r TickClock,
    /// The next event, if it was already read.
    next: Option<TimedEvent>,
    length: u64,
    progress: Option<&'r mut ReplayProgress>,
}

impl<'r> RecordingPlayer<'r> {
    /// Starts with the blocks that are older than the recording.
    pub(crate) fn new(
        source: &'r mut RecordingSource,
        index: &'r mut RecordingIndex,
        progress: Option<&'r mut ReplayProgress>,
        max_entries: usize,
        observer: &mut impl ReplayObserver,
    ) -> Result<Self, AnalyzeError> {
        let mut replay = HeapReplay::new(max_entries);
        for offset in &index.older {
            let Some(payload) = source.payload(*offset)? else { continue };
            for block in LiveDecoder::new(&payload) {
                match block {
                    Ok(live) => replay.add_older(live.address, live.block, observer)?,
                    Err(error) => index.warnings.malformed(*offset, error),
                }
            }
        }
        let length = source.length;
        let RecordingIndex { warnings, threads, about, clock, .. } = index;
        let merge = ThreadMerge::new(source, warnings, threads, about.tick, max_entries);
        Ok(Self { merge, replay, clock, next: None, length, progress })
    }

    /// Continues to a time that is not before the current time.
    pub(crate) fn play(
        &mut self,
        until: ReplayEnd,
        observer: &mut impl ReplayObserver,
    ) -> Result<(), AnalyzeError> {
        while self.step(until, observer)? {}
        if until == ReplayEnd::End {
            self.replay.finish(observer);
        }
        Ok(())
    }

    /// Applies the next event. Returns `false` if there is no further event up to `until`.
    #[inline]
    pub(crate) fn step(
        &mut self,
        until: ReplayEnd,
        observer: &mut impl ReplayObserver,
    ) -> Result<bool, AnalyzeError> {
        let (last_tick, last_event) = match until {
            ReplayEnd::End => (u64::MAX, u64::MAX),
            ReplayEnd::Tick(tick) => (tick, u64::MAX),
            ReplayEnd::Event(event) => (u64::MAX, event),
        };
        if self.replay.now().event >= last_event {
            return Ok(false);
        }
        let next = match self.next.take() {
            Some(event) => Some(event),
            None => self.merge.next()?,
        };
        let Some(event) = next else { return Ok(false) };
        if event.tick > last_tick {
            self.next = Some(event);
            return Ok(false);
        }
        self.replay.apply(&event, observer)?;
        if self.replay.now().event.is_multiple_of(STEP)
            && let Some(progress) = &mut self.progress
        {
            progress(self.merge.position, self.length);
        }
        Ok(true)
    }
}
