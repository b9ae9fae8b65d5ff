//! `std::sync::mpsc`: what waits in a channel is seen by nobody.

use std::sync::mpsc;

use crate::impls::opaque::opaque;
use crate::impls::plain::plain;
use crate::impls::wrapper::{parts, variants};

opaque!([T] mpsc::Sender<T>, [T] mpsc::SyncSender<T>, [T] mpsc::Receiver<T>);
plain!([] mpsc::RecvError, [] mpsc::TryRecvError, [] mpsc::RecvTimeoutError);
parts!(mpsc::SendError<T>, [T], self, self.0);
variants!(mpsc::TrySendError<T>, [T], mpsc::TrySendError::Full, mpsc::TrySendError::Disconnected;);
