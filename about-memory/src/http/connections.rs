//! The connections of a server, and the assignment of places.
//!
//! Anyone who reaches the server can open connections, even without the token. If all places are taken, a new
//! connection gets the place of the oldest connection that has not shown the token, and the old connection is closed.
//! So open connections never keep the user out. A connection is refused only if all places belong to requests with the
//! token.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::response::{HttpRefusal, refuse};

/// At most this many connections are open at the same time.
const MAX_CONNECTIONS: usize = 64;
/// At most this many connections wait for a refusal.
const MAX_REFUSED: usize = 64;
/// The time that a refused client has to send its request.
const TIME_TO_ASK: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
struct PlaceCounts {
    /// The number of the latest connection.
    last: u64,
    taken: usize,
    /// A second handle of each connection that has not shown the token, by number.
    strangers: BTreeMap<u64, TcpStream>,
}

/// The places for connections of a server.
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
        // A thread refuses connections, so that the accepting thread never waits for a client.
        thread::Builder::new().name("refusals".to_owned()).spawn(move || {
            for mut stream in from {
                // Closing a connection with unread bytes would discard the answer before the client reads it.
                let _ = stream.set_read_timeout(Some(TIME_TO_ASK));
                let _ = stream.read(&mut [0; 4096]);
                let _ = refuse(
                    &HttpRefusal::new(503, "there are too many connections; close another page"),
                    &mut stream,
                );
            }
        })?;
        Ok(Self { places: Arc::default(), refused })
    }

    /// Returns the place of a new connection; `None` if the connection is refused or closed.
    pub(super) fn place(&self, stream: TcpStream) -> Option<(ConnectionPlace, TcpStream)> {
        // The second handle can end the connection.
        let handle = stream.try_clone().ok()?;
        let mut places = lock(&self.places);
        if places.taken >= MAX_CONNECTIONS {
            match places.strangers.pop_first() {
                Some((_, oldest)) => {
                    // The thread of the old connection ends and returns its place. The new connection already uses it.
                    let _ = oldest.shutdown(Shutdown::Both);
                }
                None => {
                    drop(places);
                    // If too many connections wait for a refusal, the new connection is closed.
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

/// A place for a connection. Dropping it frees the place, even after a panic.
#[derive(Debug)]
pub struct ConnectionPlace {
    places: Arc<Mutex<PlaceCounts>>,
    number: u64,
}

impl ConnectionPlace {
    /// Called when the client has shown the token. The connection then keeps its place.
    pub fn keep(&self) {
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
