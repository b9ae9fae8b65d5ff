//! Makes text on one thread while another thread compresses or stores it.

use std::io::{self, Write};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use crate::error::ExportError;

const PIECE: usize = 1 << 16;
/// The maximum number of pieces in the channel.
const WAITING: usize = 8;

/// Runs `produce` on a thread of its own. Passes the pieces that `produce` sends to `consume`.
///
/// # Errors
///
/// Returns an error if no thread can be started, or if `consume` or `produce` fails.
pub(crate) fn run<T: Send>(
    produce: impl FnOnce(SyncSender<T>) -> Result<(), ExportError> + Send,
    consume: impl FnMut(T) -> io::Result<()>,
) -> Result<(), ExportError> {
    let (sender, receiver) = sync_channel::<T>(WAITING);
    thread::scope(|scope| {
        let producer = thread::Builder::new().spawn_scoped(scope, || produce(sender))?;
        // After an error of `consume`, the receiver is dropped, so the next `send` of `produce` fails.
        let consumed = receiver.into_iter().try_for_each(consume);
        let produced = producer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        consumed?;
        produced
    })
}

/// Sends a piece to the function `consume` of [`run`].
pub(crate) fn send<T>(sender: &SyncSender<T>, piece: T) -> io::Result<()> {
    sender.send(piece).map_err(|_| io::ErrorKind::BrokenPipe.into())
}

/// Runs `produce` on a thread of its own. Writes its bytes to `out`.
///
/// # Errors
///
/// Returns the same errors as [`run`].
pub(crate) fn write(
    out: &mut impl Write,
    produce: impl FnOnce(&mut PieceWriter) -> Result<(), ExportError> + Send,
) -> Result<(), ExportError> {
    let produce = |sender| {
        let mut pieces = PieceWriter { piece: Vec::with_capacity(PIECE), sender };
        produce(&mut pieces)?;
        Ok(pieces.flush()?)
    };
    run(produce, |piece: Vec<u8>| out.write_all(&piece))
}

/// A writer that sends its bytes in pieces of equal size. Only the last piece is shorter.
#[derive(Debug)]
pub(crate) struct PieceWriter {
    piece: Vec<u8>,
    sender: SyncSender<Vec<u8>>,
}

impl Write for PieceWriter {
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
        send(&self.sender, piece)
    }
}
