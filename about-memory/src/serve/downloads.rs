//! Tasks that take much memory: writing files, comparing dumps and recordings, and reading uploaded dumps and
//! recordings. The server does one such task at a time. It writes the whole file before it answers, so that a failure
//! is an error message instead of a partial file.

use std::fs::File;
use std::io::{self, BufWriter, Seek as _, Write};
use std::net::TcpStream;
use std::sync::{Mutex, MutexGuard, TryLockError};

use memory_export::ProfileFormat;
use serde::de::Error as _;
use serde::{Deserialize as _, Deserializer};

use super::answers::has_gone;
use crate::http::{HttpRefusal, HttpResponse};
use crate::session::Session;

/// Parses the format of stacks in a request.
pub(super) fn stacks_format<'de, D: Deserializer<'de>>(from: D) -> Result<ProfileFormat, D::Error> {
    let name = String::deserialize(from)?;
    let known = ProfileFormat::ALL.into_iter().find(|format| format.name() == name);
    known.ok_or_else(|| {
        let names = ProfileFormat::ALL.map(ProfileFormat::name).join(", ");
        D::Error::custom(format!("unknown format `{name}`, expected one of {names}"))
    })
}

#[derive(Debug, Default)]
pub(super) struct PendingDownloads {
    working: Mutex<()>,
}

impl PendingDownloads {
    /// Returns the permission for one task. Dropping the guard ends the permission. Fails if another task has the
    /// permission.
    pub(super) fn one(&self) -> Result<MutexGuard<'_, ()>, HttpRefusal> {
        match self.working.try_lock() {
            Ok(one) => Ok(one),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                let reason = "another file is being written or read; try again when it is done";
                Err(HttpRefusal::new(429, reason))
            }
        }
    }

    /// Answers with the file that `write` writes. The page shows an error of `write` to its reader.
    pub(super) fn answer(
        &self,
        name: String,
        session: &Session,
        client: &TcpStream,
        write: impl FnOnce(&mut dyn Write) -> Result<(), String>,
    ) -> Result<HttpResponse, HttpRefusal> {
        let _one = self.one()?;
        let cannot = |error: io::Error| HttpRefusal::new(503, error.to_string());
        let folder = session.folder().map_err(cannot)?;
        let file = tempfile::tempfile_in(folder.path()).map_err(cannot)?;
        let mut out = BufWriter::with_capacity(1 << 16, DownloadWriter { file, client });
        write(&mut out).map_err(|error| match has_gone(client) {
            true => HttpRefusal::gone(),
            false => HttpRefusal::new(409, error),
        })?;
        let DownloadWriter { mut file, .. } = out.into_inner().map_err(|error| cannot(error.into_error()))?;
        file.rewind().map_err(cannot)?;
        Ok(HttpResponse::download(name, move |out| {
            let copied = io::copy(&mut file, out);
            drop(folder);
            copied.map(drop)
        }))
    }
}

/// A file for a client. Writing fails after the client has closed the connection.
struct DownloadWriter<'a> {
    file: File,
    client: &'a TcpStream,
}

impl Write for DownloadWriter<'_> {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        if has_gone(self.client) {
            return Err(io::Error::other("the client has closed the connection"));
        }
        self.file.write(part)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
