//! The thread that accepts connections, and its end.

use std::io::{self, Read as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::connections::{ConnectionPlace, ConnectionPlaces};
use super::guard::RequestGuard;
use super::listening::{Listen, ServerSocket};

/// The time that a client has to close a connection after its answer.
const TIME_TO_CLOSE: Duration = Duration::from_millis(500);
/// The time that a client has to accept a part of a response.
const TIME_TO_TAKE: Duration = Duration::from_secs(30);

/// Answers the request of a connection.
pub trait ConnectionHandler: Send + Sync + 'static {
    /// Reads the request and writes the answer. The server closes the connection afterwards.
    fn serve(&self, place: &ConnectionPlace, stream: &mut TcpStream);
}

/// A server that runs on its own threads until it is dropped.
#[derive(Debug)]
pub struct HttpServer {
    listener: Arc<ServerSocket>,
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl HttpServer {
    /// Starts a server with the handler that `handler` makes.
    ///
    /// # Errors
    ///
    /// Returns an error if the port or the path is in use, a host name is not valid, or the system provides no random
    /// bytes or no thread.
    pub fn start<H: ConnectionHandler>(
        listen: &Listen,
        port: u16,
        read_only: bool,
        handler: impl FnOnce(RequestGuard) -> H,
    ) -> io::Result<(Self, Arc<H>)> {
        let listener = Arc::new(listen.open(port)?);
        let address = listener.address(port)?;
        let handler = Arc::new(handler(RequestGuard::new(listen, address, read_only)?));
        let is_over = Arc::new(AtomicBool::new(false));
        let connections = ConnectionPlaces::new()?;
        let (on, there, ends) = (Arc::clone(&listener), Arc::clone(&handler), Arc::clone(&is_over));
        let accept = move || accept(&on, &there, &ends, &connections);
        let thread = thread::Builder::new().name("serve".to_owned()).spawn(accept)?;
        Ok((Self { listener, address, is_over, thread: Some(thread) }, handler))
    }

    /// Returns the address that the server listens on or, with a Unix socket, the address from which ssh forwards.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // The server's thread waits for a connection, so it is woken up.
        self.listener.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn accept<H: ConnectionHandler>(
    listener: &ServerSocket,
    handler: &Arc<H>,
    is_over: &AtomicBool,
    connections: &ConnectionPlaces,
) {
    loop {
        let stream = listener.accept();
        if is_over.load(Ordering::SeqCst) {
            return;
        }
        // A connection that ended before it was accepted must not end the server.
        let Ok(stream) = stream else {
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        let _ = stream.set_write_timeout(Some(TIME_TO_TAKE));
        let _ = stream.set_nodelay(true);
        let Some((place, mut stream)) = connections.place(stream) else { continue };
        let there = Arc::clone(handler);
        let work = move || {
            there.serve(&place, &mut stream);
            close(&mut stream);
        };
        // If no thread can be started, the connection is closed.
        let _ = thread::Builder::new().name("connection".to_owned()).spawn(work);
    }
}

/// Closes a connection. Closing it with unread bytes would discard the answer before the client reads it.
fn close(stream: &mut TcpStream) {
    let _ = stream.shutdown(Shutdown::Write);
    let end = Instant::now() + TIME_TO_CLOSE;
    let mut rest = [0; 4096];
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return;
        }
        if !matches!(stream.read(&mut rest), Ok(1..)) {
            return;
        }
    }
}
