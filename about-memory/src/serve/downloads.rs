//! Files that take a lot of memory to write. The server writes one of them at a time, and the whole file before it
//! answers, so that a failure is an answer in words and not half a file.

use std::fs::File;
use std::io::{self, BufWriter, Seek as _, Write};
use std::net::TcpStream;
use std::sync::{Mutex, TryLockError};

use super::answers::has_gone;
use super::response::{Refusal, Response};
use crate::session::Session;

#[derive(Debug, Default)]
pub(super) struct Downloads {
    writing: Mutex<()>,
}

impl Downloads {
    /// Answers with the file that `write` writes. The reader of the page sees its error.
    pub(super) fn answer(
        &self,
        name: String,
        session: &Session,
        client: &TcpStream,
        write: impl FnOnce(&mut dyn Write) -> Result<(), String>,
    ) -> Result<Response, Refusal> {
        let _one = match self.writing.try_lock() {
            Ok(one) => one,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                return Err(Refusal::new(429, "another file is being written; try again when it is done"));
            }
        };
        let cannot = |error: io::Error| Refusal::new(503, error.to_string());
        let folder = session.folder().map_err(cannot)?;
        let file = tempfile::tempfile_in(folder.path()).map_err(cannot)?;
        let mut out = BufWriter::with_capacity(1 << 16, Awaited { file, client });
        write(&mut out).map_err(|error| match has_gone(client) {
            true => Refusal::gone(),
            false => Refusal::new(409, error),
        })?;
        let Awaited { mut file, .. } = out.into_inner().map_err(|error| cannot(error.into_error()))?;
        file.rewind().map_err(cannot)?;
        Ok(Response::download(name, move |out| {
            let copied = io::copy(&mut file, out);
            drop(folder);
            copied.map(drop)
        }))
    }
}

/// A file for a client. Writing fails once the client has gone.
struct Awaited<'a> {
    file: File,
    client: &'a TcpStream,
}

impl Write for Awaited<'_> {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        if has_gone(self.client) {
            return Err(io::Error::other("the client has gone"));
        }
        self.file.write(part)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
