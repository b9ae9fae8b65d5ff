//! Tickets: addresses without the token, for programs that cannot send a header, such as `go tool pprof`. Each is good for
//! one file, once, within a minute.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::stacks;
use super::token::Token;

const TIME: Duration = Duration::from_secs(60);
/// The most tickets that nobody has used yet.
const MOST: usize = 16;

/// A file: of these stacks.
pub(super) type Resource = (u32, stacks::Export);

#[derive(Debug, Default)]
pub(super) struct Tickets(Mutex<Vec<(Token, Instant, Resource)>>);

impl Tickets {
    /// The path at which a file is now.
    pub(super) fn issue(&self, resource: Resource) -> std::io::Result<String> {
        let token = Token::new()?;
        let path = format!("/ticket/{}", token.as_str());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(_, end, _)| *end > Instant::now());
        if all.len() >= MOST {
            all.remove(0);
        }
        all.push((token, Instant::now() + TIME, resource));
        Ok(path)
    }

    /// Takes the ticket of a path, which is not good any more then.
    pub(super) fn take(&self, path: &str) -> Option<Resource> {
        let name = path.strip_prefix("/ticket/")?.as_bytes();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(_, end, _)| *end > Instant::now());
        let place = all.iter().position(|(token, _, _)| token.is(name))?;
        Some(all.remove(place).2)
    }
}
