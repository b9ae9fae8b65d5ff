//! `std::sync::mpsc`: a channel gives no access to the values that it contains.

use std::sync::mpsc;

use crate::measure::impls::opaque::opaque;
use crate::measure::impls::plain::plain;
use crate::measure::impls::wrapper::{parts, variants};

opaque!([T] mpsc::Sender<T>, [T] mpsc::SyncSender<T>, [T] mpsc::Receiver<T>);
plain!([] mpsc::RecvError, [] mpsc::TryRecvError, [] mpsc::RecvTimeoutError);
parts!(mpsc::SendError<T>, [T], self, self.0);
variants!(mpsc::TrySendError<T>, [T], mpsc::TrySendError::Full, mpsc::TrySendError::Disconnected;);
