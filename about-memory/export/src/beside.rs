//! Makes text on one thread while another one compresses or stores it.

use std::io::{self, Write};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use crate::error::ExportError;

const PIECE: usize = 1 << 16;
/// The number of pieces that may wait.
const WAITING: usize = 8;

/// Gives `out` what `produce` writes, which runs on a thread of its own.
///
/// # Errors
///
/// If there can be no thread, if `out` fails, or that of `produce`.
pub(crate) fn write(
    out: &mut impl Write,
    produce: impl FnOnce(&mut Pieces) -> Result<(), ExportError> + Send,
) -> Result<(), ExportError> {
    let (sender, receiver) = sync_channel::<Vec<u8>>(WAITING);
    thread::scope(|scope| {
        let producer = thread::Builder::new().spawn_scoped(scope, move || {
            let mut pieces = Pieces { piece: Vec::with_capacity(PIECE), sender };
            produce(&mut pieces)?;
            Ok(pieces.flush()?)
        })?;
        // After an error of `out` nobody receives, which ends the producer.
        let written = receiver.into_iter().try_for_each(|piece| out.write_all(&piece));
        let produced = producer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        written?;
        produced
    })
}

/// What is written, in pieces of one size but the last.
#[derive(Debug)]
pub(crate) struct Pieces {
    piece: Vec<u8>,
    sender: SyncSender<Vec<u8>>,
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (now, _) = bytes.split_at(bytes.len().min(PIECE - self.piece.len()));
        self.piece.extend_from_slice(now);
        if self.piece.len() == PIECE {
            self.flush()?;
        }
        Ok(now.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let piece = core::mem::replace(&mut self.piece, Vec::with_capacity(PIECE));
        self.sender.send(piece).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
