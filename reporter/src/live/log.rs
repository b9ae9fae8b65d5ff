//! Streams the log of allocations to a peer: a line of JSON for each allocation, soon after it happens.
//!
//! If an engine waits, it records while any peer has a log. A log ends when its peer sends a line or hangs up. The
//! engine limits the log's length: a peer that reads too slowly loses the oldest entries, and gets a line about the
//! loss.

use core::time::Duration;
use std::collections::HashMap;
use std::io::{self, Write as _};

use crate::engine_abi;
use crate::platform::Peer;
use crate::process_lock::ProcessLock;
use crate::watching::{MemoryObserver, ObserverError};

use super::hearing::{PeerSignal, TIME_TO_READ, hear};
use super::protocol::{TrackAnswer, VERSION};

/// The name of the request.
pub(super) const REQUEST: &str = "dmd-log";

/// The value of `per_million` for a log of all allocations.
pub(super) const ALL: u64 = 1_000_000;

/// The time between two reads of the log.
const PAUSE: Duration = Duration::from_millis(100);

/// The bytes of text that are sent at once.
const AT_ONCE: usize = 1 << 16;

/// The number of peers whose logs keep an engine recording. Without these logs, the engine would wait.
static PEERS: ProcessLock<usize> = ProcessLock::new(0);

/// Keeps an engine recording until this value is dropped.
struct StartedEngine {
    /// Started for a log; stops with the last log.
    for_peers: bool,
}

impl StartedEngine {
    fn start() -> io::Result<Self> {
        let mut peers = PEERS.lock();
        if *peers == 0 {
            match engine_abi::start_tracking(0) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                    return Err(io::Error::other(
                        "DMD is off in this process; start it with about-memory run --wait-for-track",
                    ));
                }
                // The engine already records for another purpose.
                Err(_) => return Ok(Self { for_peers: false }),
            }
        }
        *peers += 1;
        Ok(Self { for_peers: true })
    }
}

impl Drop for StartedEngine {
    fn drop(&mut self) {
        if self.for_peers {
            let mut peers = PEERS.lock();
            *peers -= 1;
            if *peers == 0 {
                engine_abi::stop_tracking();
            }
        }
    }
}

/// A log for one peer.
pub(super) struct PeerLog {
    /// Dropped first: the engine may stop recording only after its logs are closed.
    observer: MemoryObserver,
    recording: StartedEngine,
}

impl PeerLog {
    /// Opens a log of at most `length` entries, for `per_million` of each million allocations.
    pub(super) fn open(per_million: u64, length: u64) -> io::Result<Self> {
        let observer = MemoryObserver::new();
        let other = |error: ObserverError| io::Error::other(error.to_string());
        observer.set_allocation_sampling_probability(per_million as f64 / ALL as f64).map_err(other)?;
        observer.set_max_allocations_log_length(length).map_err(other)?;
        let recording = StartedEngine::start()?;
        observer.set_tracking_allocation_sites(true).map_err(|error| match error {
            ObserverError::NoRoom => {
                io::Error::other("cannot open a log: 16 logs are already open, or memory is short")
            }
            ObserverError::Sampling => io::Error::other(
                "cannot open a log: DMD records only a sample, and a log needs all allocations",
            ),
            error => other(error),
        })?;
        Ok(Self { observer, recording })
    }

    /// Sends the entries of the log until the peer sends a line or hangs up. After a line, sends the remaining
    /// entries.
    pub(super) fn send(&self, peer: &mut Peer) -> io::Result<()> {
        let begun = TrackAnswer { version: VERSION, sample_bytes: 0, recording: false };
        // DMD must not log allocations of this thread: each entry would cause further entries.
        engine_abi::unrecorded(|| {
            peer.write_all(begun.to_line().as_bytes())?;
            loop {
                let heard = hear(peer, PAUSE)?;
                if heard == PeerSignal::Gone {
                    return Ok(());
                }
                self.send_new(peer)?;
                if heard == PeerSignal::Line {
                    return Ok(());
                }
                if !self.recording.for_peers && !engine_abi::is_running() {
                    return Err(io::Error::other("DMD has stopped recording this process"));
                }
            }
        })
    }

    fn send_new(&self, peer: &mut Peer) -> io::Result<()> {
        let (entries, contained) = self.observer.drain_places().map_err(io::Error::other)?;
        let mut text = String::new();
        if contained.overflowed {
            text.push_str("{\"overflowed\":true}\n");
        }
        if contained.lost > 0 {
            text.push_str(&format!("{{\"lost\":{}}}\n", contained.lost));
        }
        // Keep each stack's text: few stacks account for many entries, and the text of a stack has thousands of bytes.
        let mut stacks = HashMap::new();
        for entry in &entries {
            let stack = entry
                .frame
                .as_ref()
                .map(|frame| &**stacks.entry(frame.frames().as_ptr()).or_insert_with(|| frame.to_json()));
            entry.push_json(stack, &mut text);
            text.push('\n');
            if text.len() >= AT_ONCE {
                peer.allow(TIME_TO_READ);
                peer.write_all(text.as_bytes())?;
                text.clear();
            }
        }
        peer.allow(TIME_TO_READ);
        peer.write_all(text.as_bytes())
    }
}
