//! Waits for a line or the disconnection of a peer, while the answer of this process to the peer is unfinished.

use core::time::Duration;
use std::io::{self, Read as _};

use super::protocol::MAX_REQUEST;
use crate::platform::Peer;

/// The time in which a peer must read a part of the answer of this process.
pub(super) const TIME_TO_READ: Duration = Duration::from_secs(60);

/// The result of waiting for a line from a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerSignal {
    Nothing,
    Line,
    /// The peer hung up, or sent too long a line.
    Gone,
}

/// Waits at most `time` for a line. Bytes of an unfinished line are dropped; the next call starts a new line.
pub(super) fn hear(peer: &mut Peer, time: Duration) -> io::Result<PeerSignal> {
    let (mut byte, mut length) = ([0], 0);
    peer.allow(time);
    while length < MAX_REQUEST {
        match peer.read(&mut byte) {
            Ok(0) => return Ok(PeerSignal::Gone),
            Ok(_) if byte == *b"\n" => return Ok(PeerSignal::Line),
            Ok(_) => length += 1,
            Err(error) if is_no_answer_yet(&error) => return Ok(PeerSignal::Nothing),
            Err(error) => return Err(error),
        }
    }
    Ok(PeerSignal::Gone)
}

fn is_no_answer_yet(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}
