//! The stream of events, as server-sent events (HTML Standard, section 9.2). The page reads it with `fetch`, because an
//! `EventSource` cannot send the token.

use std::io::{self, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;

use crate::http::{BodyLength, head};
use crate::session::{EventSubject, Session, SessionEvent};

/// While computations run, the page gets their progress at this interval.
const PROGRESS: Duration = Duration::from_millis(100);
/// A stream without events sends a comment at this interval, so that the server notices when the page has closed the
/// connection.
const BEAT: Duration = Duration::from_secs(2);

/// Sends the events after `seq` until the page closes the connection or `is_over` returns true.
pub(super) fn events(
    session: &Session,
    mut seq: u64,
    stream: &mut TcpStream,
    is_over: impl Fn() -> bool,
) -> io::Result<()> {
    head(stream, 200, "text/event-stream", BodyLength::Connection, None)?;
    // Whether the page shows running jobs. If it does, the page must also be informed when the last job has ended.
    let mut shows_jobs = false;
    while !is_over() {
        let has_jobs = !session.jobs().is_empty();
        let mut text = String::new();
        match session.events().wait(seq, if has_jobs { PROGRESS } else { BEAT }) {
            Some(events) => {
                for event in events {
                    seq = event.seq;
                    text += &format!("id: {seq}\ndata: {}\n\n", data(&event));
                }
            }
            None => {
                // The session no longer has these events, so the page reads the whole state again.
                seq = session.events().last();
                text += &format!("id: {seq}\nevent: reset\ndata: {{}}\n\n");
            }
        }
        if has_jobs || shows_jobs {
            let jobs: Vec<_> = session
                .jobs()
                .iter()
                .map(
                    |job| json!({ "id": job.id.0, "kind": job.kind, "done": job.steps.0, "of": job.steps.1 }),
                )
                .collect();
            shows_jobs = !jobs.is_empty();
            text += &format!("event: jobs\ndata: {}\n\n", json!(jobs));
        }
        if text.is_empty() {
            text.push_str(":\n\n");
        }
        stream.write_all(text.as_bytes())?;
    }
    Ok(())
}

fn data(event: &SessionEvent) -> serde_json::Value {
    let (subject, id) = match event.subject {
        EventSubject::Snapshot(id) => ("snapshot", u64::from(id.0)),
        EventSubject::Job(id) => ("job", id.0),
        EventSubject::List => ("list", 0),
    };
    json!({
        "seq": event.seq, "subject": subject, "id": id, "kind": event.kind, "state": event.state,
        "message": event.message,
    })
}
