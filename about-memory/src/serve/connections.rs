//! The connections of a server, and who gets a place.
//!
//! Whoever reaches the server can open connections, and has no token yet. So a connection that has not shown the token makes
//! room for a new one when all places are taken, the oldest first: connections that are left open never keep the user out.
//! A connection is refused only if all places belong to requests with the token.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::response::{HttpRefusal, refuse};

/// The most connections at the same time.
const MAX_CONNECTIONS: usize = 64;
/// The most connections that wait for a refusal.
const MAX_REFUSED: usize = 64;
/// The time that a refused client has to send its request.
const TIME_TO_ASK: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
struct PlaceCounts {
    /// The number of the latest connection.
    last: u64,
    taken: usize,
    /// The connections without the token, by number: another handle of each.
    strangers: BTreeMap<u64, TcpStream>,
}

/// The places of a server.
#[derive(Debug)]
pub(super) struct ConnectionPlaces {
    places: Arc<Mutex<PlaceCounts>>,
    refused: SyncSender<TcpStream>,
}

fn lock(places: &Mutex<PlaceCounts>) -> MutexGuard<'_, PlaceCounts> {
    places.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ConnectionPlaces {
    pub(super) fn new() -> io::Result<Self> {
        let (refused, from) = mpsc::sync_channel::<TcpStream>(MAX_REFUSED);
        // Who accepts connections waits for no client.
        thread::Builder::new().name("refusals".to_owned()).spawn(move || {
            for mut stream in from {
                // Closing with unread bytes would take the answer away from the client.
                let _ = stream.set_read_timeout(Some(TIME_TO_ASK));
                let _ = stream.read(&mut [0; 4096]);
                let _ = refuse(&HttpRefusal::new(503, "there are too many connections"), &mut stream);
            }
        })?;
        Ok(Self { places: Arc::default(), refused })
    }

    /// The place of a new connection; `None` if the connection is refused or closed.
    pub(super) fn place(&self, stream: TcpStream) -> Option<(ConnectionPlace, TcpStream)> {
        // A second handle can end it.
        let handle = stream.try_clone().ok()?;
        let mut places = lock(&self.places);
        if places.taken >= MAX_CONNECTIONS {
            match places.strangers.pop_first() {
                Some((_, oldest)) => {
                    // Its thread ends, and gives a place back that the new connection has already.
                    let _ = oldest.shutdown(Shutdown::Both);
                }
                None => {
                    drop(places);
                    // With too many of them the connection is closed.
                    let _ = self.refused.try_send(stream);
                    return None;
                }
            }
        }
        places.taken += 1;
        places.last += 1;
        let number = places.last;
        places.strangers.insert(number, handle);
        drop(places);
        Some((ConnectionPlace { places: Arc::clone(&self.places), number }, stream))
    }
}

/// A place, until it is dropped, also by a panic.
#[derive(Debug)]
pub(super) struct ConnectionPlace {
    places: Arc<Mutex<PlaceCounts>>,
    number: u64,
}

impl ConnectionPlace {
    /// The client has shown the token: its connection keeps its place.
    pub(super) fn keep(&self) {
        lock(&self.places).strangers.remove(&self.number);
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        let mut places = lock(&self.places);
        places.taken -= 1;
        places.strangers.remove(&self.number);
    }
}
