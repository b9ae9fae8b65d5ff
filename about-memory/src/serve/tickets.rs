//! Tickets: addresses without the token, for programs that cannot send a header, such as `go tool pprof`. A ticket
//! returns one file, once, within a minute.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::stacks;
use crate::http::AccessToken;

const TIME: Duration = Duration::from_secs(60);
/// At most this many unused tickets exist.
const MOST: usize = 16;

/// The file of a ticket: the number of the stacks, the format, and the part of the recording.
pub(super) type TicketResource = (u32, stacks::StackExport);

/// The permission to get a file.
#[derive(Debug)]
pub(super) struct DownloadTicket {
    token: AccessToken,
    end: Instant,
    pub(super) resource: TicketResource,
}

#[derive(Debug, Default)]
pub(super) struct DownloadTickets(Mutex<Vec<DownloadTicket>>);

impl DownloadTickets {
    /// Makes a ticket. Returns the path of its file.
    pub(super) fn issue(&self, resource: TicketResource) -> std::io::Result<String> {
        let token = AccessToken::new()?;
        let path = format!("/ticket/{}", token.as_str());
        self.put_back(DownloadTicket { token, end: Instant::now() + TIME, resource });
        Ok(path)
    }

    /// Makes a ticket valid until its end. If there are already [`MOST`] tickets, the oldest of them becomes invalid.
    pub(super) fn put_back(&self, ticket: DownloadTicket) {
        let mut all = self.all();
        if all.len() >= MOST {
            all.remove(0);
        }
        all.push(ticket);
    }

    /// Removes the expired tickets, and returns all valid tickets.
    fn all(&self) -> MutexGuard<'_, Vec<DownloadTicket>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|ticket| ticket.end > Instant::now());
        all
    }

    /// Takes the ticket of a path, so that it is valid only once.
    pub(super) fn take(&self, path: &str) -> Option<DownloadTicket> {
        let name = path.strip_prefix("/ticket/")?.as_bytes();
        let mut all = self.all();
        let place = all.iter().position(|ticket| ticket.token.is(name))?;
        Some(all.remove(place))
    }
}
