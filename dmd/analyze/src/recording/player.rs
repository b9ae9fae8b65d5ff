//! Replays a recording up to a time.

use dmd_format::recording::LiveDecoder;

use super::clock::Clock;
use super::event::Event;
use super::index::Index;
use super::merge::Merge;
use super::replay::{Observer, Replay};
use super::source::Source;
use crate::error::AnalyzeError;

/// How far to replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    End,
    /// Up to the last event that is not after this tick.
    Tick(u64),
    /// This many events.
    Event(u64),
}

/// A function that gets the progress: the bytes that the reader has read, and all bytes.
pub(crate) type Progress = Box<dyn FnMut(u64, u64) + Send>;

/// Events between two calls of the progress.
const STEP: u64 = 1 << 16;

/// A recording that is being replayed.
pub(crate) struct Player<'r> {
    merge: Merge<'r>,
    pub(crate) replay: Replay,
    pub(crate) clock: &'r Clock,
    /// The next event, if it was read.
    next: Option<Event>,
    length: u64,
    progress: Option<&'r mut Progress>,
}

impl<'r> Player<'r> {
    /// Begins with the blocks that are older than the recording.
    pub(crate) fn new(
        source: &'r mut Source,
        index: &'r mut Index,
        progress: Option<&'r mut Progress>,
        max_entries: usize,
        observer: &mut impl Observer,
    ) -> Result<Self, AnalyzeError> {
        let mut replay = Replay::new(max_entries);
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
        let Index { warnings, threads, about, clock, .. } = index;
        let merge = Merge::new(source, warnings, threads, about.tick, max_entries);
        Ok(Self { merge, replay, clock, next: None, length, progress })
    }

    /// Goes on to a time that is not before the present one.
    pub(crate) fn play(&mut self, until: Until, observer: &mut impl Observer) -> Result<(), AnalyzeError> {
        while self.step(until, observer)? {}
        if until == Until::End {
            self.replay.finish(observer);
        }
        Ok(())
    }

    /// Takes the next event; returns whether there was one until this time.
    #[inline]
    pub(crate) fn step(&mut self, until: Until, observer: &mut impl Observer) -> Result<bool, AnalyzeError> {
        let (last_tick, last_event) = match until {
            Until::End => (u64::MAX, u64::MAX),
            Until::Tick(tick) => (tick, u64::MAX),
            Until::Event(event) => (u64::MAX, event),
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
