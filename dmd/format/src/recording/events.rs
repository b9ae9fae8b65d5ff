//! Events of one thread.

use super::numbers::{self, PayloadReader, zigzag};
use super::{MalformedPayload, PREDICTIONS, RecordedBlock, natural_slop};

/// An event of a block, with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockEvent {
    /// The time in ticks.
    pub tick: u64,
    /// The start of the block.
    pub address: u64,
    /// The action of the event.
    pub what: BlockAction,
}

/// The action of an event. An end contains the block if it happened in the child of a fork before the child opened its
/// file: the block may be from before the fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockAction {
    /// The program got the block from the allocator.
    Begin(RecordedBlock),
    /// The program is about to free the block.
    End(Option<RecordedBlock>),
    /// The allocator is about to move the block: the next begin of the thread is the moved block.
    EndByMove(Option<RecordedBlock>),
    /// The allocator did not move the block after its [`EndByMove`](Self::EndByMove): the block is still live.
    Back(RecordedBlock),
}

const BEGIN: u8 = 0;
const END: u8 = 1;
const END_BY_MOVE: u8 = 2;
const OTHER: u8 = 3;
const PREDICTED: u8 = 1 << 2;
const TICK_SHIFT: u32 = 3;
/// In the first byte: the ticks beyond this number follow as a varint.
const MANY_TICKS: u64 = 31;

const BACK: u8 = 0;
const END_OF: u8 = 1;
const END_BY_MOVE_OF: u8 = 2;
/// A second byte above this value is this value plus the low bits of an address.
const LOW_BITS: u8 = 16;

/// The maximum number of bytes of an event: two for its low bits, two for its kind, and five numbers.
const MOST: usize = 4 + 5 * numbers::MOST;

/// The state that the encoder and the decoder of a chunk share.
#[derive(Clone, Debug)]
struct CodecState {
    tick: u64,
    /// The address divided by 16.
    place: u64,
    stack: u32,
    predicted: [u32; PREDICTIONS],
}

impl CodecState {
    const fn new() -> Self {
        Self { tick: 0, place: 0, stack: 0, predicted: [0; PREDICTIONS] }
    }

    fn start(&mut self, tick: u64) {
        (self.tick, self.place, self.stack) = (tick, 0, 0);
        self.predicted.fill(0);
    }

    /// The table's entry for the stack that follows the current stack.
    #[inline(always)]
    fn prediction(&mut self) -> &mut u32 {
        &mut self.predicted[self.stack as usize % PREDICTIONS]
    }

    #[inline(always)]
    fn next_stack(&mut self, stack: u32) {
        *self.prediction() = stack;
        self.stack = stack;
    }
}

/// Encodes events of one thread into the payload of a chunk. It neither allocates nor panics. Memory with only zero
/// bytes is a valid encoder, because [`start`](Self::start) sets every field that is used.
#[derive(Clone, Debug)]
pub struct EventEncoder {
    state: CodecState,
    length: usize,
    events: usize,
}

impl Default for EventEncoder {
    fn default() -> Self {
        Self::new()
    }
}

impl EventEncoder {
    /// Makes a new encoder. Call [`start`](Self::start) before the first event.
    pub const fn new() -> Self {
        Self { state: CodecState::new(), length: 0, events: 0 }
    }

    /// Starts a chunk for a thread. `tick` is the tick of its first event, or an earlier tick.
    pub fn start(&mut self, payload: &mut [u8], thread: u32, tick: u64) {
        self.state.start(tick);
        (self.length, self.events) = (0, 0);
        if payload.len() >= MOST {
            self.length = numbers::write(payload, 0, thread.into());
            self.length = numbers::write(payload, self.length, tick);
        }
    }

    /// The number of bytes of the payload so far.
    #[inline(always)]
    #[allow(clippy::len_without_is_empty, reason = "a chunk that has started is not empty")]
    pub fn len(&self) -> usize {
        self.length
    }

    /// The number of events in the chunk so far.
    #[inline(always)]
    pub fn events(&self) -> usize {
        self.events
    }

    /// Whether the payload has room for this many more events of any kind.
    #[inline(always)]
    pub fn has_room(&self, payload: &[u8], events: usize) -> bool {
        payload.len() - self.length.min(payload.len()) >= events.saturating_mul(MOST)
    }

    /// Adds an event to the payload of the chunk. Returns false if the payload has no room. If the tick is earlier
    /// than the last event's tick, the event gets the last event's tick.
    #[inline(always)]
    pub fn push(&mut self, payload: &mut [u8], event: &BlockEvent) -> bool {
        let Some(out) = payload.get_mut(self.length..).and_then(|rest| rest.first_chunk_mut::<MOST>()) else {
            return false;
        };
        let length = match self.push_common(out, event) {
            Some(length) => length,
            None => self.push_any(out, event),
        };
        self.length += length;
        self.events += 1;
        true
    }

    /// Adds an event that fits into two words, and returns its length. Returns `None` and changes nothing if the event
    /// does not fit.
    #[inline(always)]
    fn push_common(&mut self, out: &mut [u8; MOST], event: &BlockEvent) -> Option<usize> {
        const BYTES: u32 = 8;
        let ticks = event.tick.saturating_sub(self.state.tick);
        let place = event.address >> 4;
        let (place_word, place_bytes) = numbers::packed(zigzag(place.wrapping_sub(self.state.place) as i64));
        if ticks >= MANY_TICKS || event.address & 15 != 0 || place_bytes >= BYTES {
            return None;
        }
        let word = place_word << BYTES | ticks << TICK_SHIFT;
        let mut length = 1 + place_bytes;
        match event.what {
            BlockAction::End(None) => numbers::write_word(out, 0, word | u64::from(END)),
            BlockAction::EndByMove(None) => numbers::write_word(out, 0, word | u64::from(END_BY_MOVE)),
            BlockAction::Begin(block) => {
                let (size_word, size_bytes) = numbers::packed(block.requested << 1);
                let is_predicted = *self.state.prediction() == block.stack;
                let (stack_word, stack_bytes) = if is_predicted {
                    (0, 0)
                } else {
                    numbers::packed(zigzag(i64::from(block.stack) - i64::from(self.state.stack)))
                };
                // The varint of a stack has at most 5 bytes, so it fits into one word with a size of 3 bytes.
                if block.slop != natural_slop(block.requested) || size_bytes > 3 {
                    return None;
                }
                let kind = if is_predicted { BEGIN | PREDICTED } else { BEGIN };
                numbers::write_word(out, 0, word | u64::from(kind));
                // The bytes of the first word after its end are 0, or the second word overwrites them.
                numbers::write_word(out, length as usize, size_word | stack_word << (BYTES * size_bytes));
                length += size_bytes + stack_bytes;
                self.state.next_stack(block.stack);
            }
            _ => return None,
        }
        self.state.tick += ticks;
        self.state.place = place;
        Some(length as usize)
    }

    /// Adds any event, and returns its length.
    #[cold]
    #[inline(never)]
    fn push_any(&mut self, out: &mut [u8; MOST], event: &BlockEvent) -> usize {
        let out = out.as_mut_slice();
        let mut at = 0;
        let low = event.address as u8 & 15;
        if low != 0 {
            out[..2].copy_from_slice(&[OTHER, LOW_BITS + low]);
            at = 2;
        }
        let (kind, other, block) = match event.what {
            BlockAction::Begin(block) => (BEGIN, 0, Some(block)),
            BlockAction::End(None) => (END, 0, None),
            BlockAction::EndByMove(None) => (END_BY_MOVE, 0, None),
            BlockAction::Back(block) => (OTHER, BACK, Some(block)),
            BlockAction::End(block) => (OTHER, END_OF, block),
            BlockAction::EndByMove(block) => (OTHER, END_BY_MOVE_OF, block),
        };
        let ticks = event.tick.saturating_sub(self.state.tick);
        self.state.tick += ticks;
        let mut head = kind | (ticks.min(MANY_TICKS) as u8) << TICK_SHIFT;
        let is_predicted = block.is_some_and(|block| *self.state.prediction() == block.stack);
        if is_predicted {
            head |= PREDICTED;
        }
        out[at] = head;
        at += 1;
        if ticks >= MANY_TICKS {
            at = numbers::write(out, at, ticks - MANY_TICKS);
        }
        if kind == OTHER {
            out[at] = other;
            at += 1;
        }
        let place = event.address >> 4;
        at = numbers::write(out, at, zigzag(place.wrapping_sub(self.state.place) as i64));
        self.state.place = place;
        if let Some(block) = block {
            let has_slop = block.slop != natural_slop(block.requested);
            // The shift loses no bit, since a block is smaller than half of the address space.
            at = numbers::write(out, at, block.requested << 1 | u64::from(has_slop));
            if has_slop {
                at = numbers::write(out, at, block.slop);
            }
            if !is_predicted {
                at = numbers::write(out, at, zigzag(i64::from(block.stack) - i64::from(self.state.stack)));
            }
            self.state.next_stack(block.stack);
        }
        at
    }
}

/// The events of a chunk. The iterator ends after an error.
#[derive(Clone, Debug)]
pub struct EventDecoder<'a> {
    payload: PayloadReader<'a>,
    thread: u32,
    state: Box<CodecState>,
}

impl<'a> EventDecoder<'a> {
    /// Reads the start of an events chunk's payload.
    ///
    /// # Errors
    ///
    /// Returns an error if the payload is too short, or if the number of the thread has more than 32 bits.
    pub fn new(payload: &'a [u8]) -> Result<Self, MalformedPayload> {
        let mut decoder =
            Self { payload: PayloadReader::new(payload), thread: 0, state: Box::new(CodecState::new()) };
        decoder.thread = decoder.payload.small_number()?;
        decoder.state.tick = decoder.payload.number()?;
        Ok(decoder)
    }

    /// The number of the thread, from 1; 0 if the thread is unknown.
    pub fn thread(&self) -> u32 {
        self.thread
    }

    /// The tick of the last event. Before the first event, this tick is not later than the tick of the first event.
    pub fn tick(&self) -> u64 {
        self.state.tick
    }

    #[inline]
    fn event(&mut self) -> Result<BlockEvent, MalformedPayload> {
        let payload = &mut self.payload;
        let mut low = 0;
        let mut head = payload.byte()?;
        if head == OTHER && payload.clone().byte()? > LOW_BITS {
            low = payload.byte()? - LOW_BITS;
            if low > 15 {
                return Err(payload.malformed("an event of an unknown kind"));
            }
            head = payload.byte()?;
        }
        let mut ticks = u64::from(head >> TICK_SHIFT);
        if ticks == MANY_TICKS {
            ticks = payload.number()?.saturating_add(MANY_TICKS);
        }
        let state = &mut *self.state;
        state.tick = state.tick.saturating_add(ticks);
        let kind = head & 3;
        let other = if kind == OTHER { payload.byte()? } else { 0 };
        state.place = state.place.wrapping_add(payload.signed()? as u64);
        let address = state.place << 4 | u64::from(low);
        let what = match (kind, other) {
            (END, _) => BlockAction::End(None),
            (END_BY_MOVE, _) => BlockAction::EndByMove(None),
            (BEGIN, _) => BlockAction::Begin(block(payload, state, head)?),
            (_, BACK) => BlockAction::Back(block(payload, state, head)?),
            (_, END_OF) => BlockAction::End(Some(block(payload, state, head)?)),
            (_, END_BY_MOVE_OF) => BlockAction::EndByMove(Some(block(payload, state, head)?)),
            _ => return Err(payload.malformed("an event of an unknown kind")),
        };
        Ok(BlockEvent { tick: state.tick, address, what })
    }
}

#[inline(always)]
fn block(
    payload: &mut PayloadReader<'_>,
    state: &mut CodecState,
    head: u8,
) -> Result<RecordedBlock, MalformedPayload> {
    let word = payload.number()?;
    let requested = word >> 1;
    let slop = if word & 1 == 1 { payload.number()? } else { natural_slop(requested) };
    let stack = if head & PREDICTED != 0 {
        *state.prediction()
    } else {
        let stack = i64::from(state.stack).checked_add(payload.signed()?);
        let stack = stack.and_then(|stack| u32::try_from(stack).ok());
        stack.ok_or_else(|| payload.malformed("the number of a stack is out of range"))?
    };
    state.next_stack(stack);
    Ok(RecordedBlock { requested, slop, stack })
}

impl Iterator for EventDecoder<'_> {
    type Item = Result<BlockEvent, MalformedPayload>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.payload.is_empty() {
            return None;
        }
        let event = self.event();
        if event.is_err() {
            self.payload.end();
        }
        Some(event)
    }
}
