//! Tool calls: they run one after the other, each on a thread of its own, with progress and cancellation.
//!
//! The thread that reads requests is never busy, so that it answers other methods and cancels a call while a tool works.
//! A call that does not end after its cancellation loses its answer and continues on its thread; at most
//! [`MAX_ABANDONED`] such threads may exist.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::control::CallControl;
use super::line::MessageWriter;
use super::opened::MemoryTools;
use super::tool;

/// At most this many calls wait.
const MAX_WAITING: usize = 64;
/// At most this many cancelled calls may still work.
const MAX_ABANDONED: usize = 4;
/// A tool has the stack of a main thread.
const STACK: usize = 8 << 20;
/// The time between two looks at a cancellation.
const LOOK: Duration = Duration::from_millis(20);
/// The calls that still wait or run have this time after the end of the input. A client that has died must not keep a
/// process tracked.
const TIME_AFTER_END: Duration = Duration::from_secs(10);
/// The time between two messages about progress.
const PROGRESS: Duration = Duration::from_millis(500);

/// A tool call of a client.
pub(super) struct ToolCall {
    /// The id of the request.
    pub(super) id: Value,
    pub(super) tool: String,
    pub(super) arguments: Map<String, Value>,
    /// The token for messages about progress, if the client wants them.
    pub(super) progress_token: Option<Value>,
    /// Whether the result has the field `resultType`.
    pub(super) is_modern: bool,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

type RunningCalls = Mutex<BTreeMap<String, Arc<CallControl>>>;

/// The calls that wait or run, and the thread that runs them.
pub(super) struct CallQueue {
    waiting: Option<SyncSender<(ToolCall, Arc<CallControl>)>>,
    running: Arc<RunningCalls>,
    worker: Option<thread::JoinHandle<()>>,
}

/// The reason why a call was not accepted.
pub(super) enum CallRefusal {
    SameId,
    TooMany,
}

impl CallQueue {
    pub(super) fn start(tools: MemoryTools, out: Arc<MessageWriter>) -> io::Result<Self> {
        let (waiting, calls) = mpsc::sync_channel(MAX_WAITING);
        let running = Arc::new(RunningCalls::default());
        let shared = Arc::clone(&running);
        let work = move || run_all(&calls, &Arc::new(tools), &shared, &out);
        let worker = thread::Builder::new().name("tools".to_owned()).spawn(work)?;
        Ok(Self { waiting: Some(waiting), running, worker: Some(worker) })
    }

    /// Whether a call with this id waits or runs.
    pub(super) fn has(&self, id: &Value) -> bool {
        lock(&self.running).contains_key(&id.to_string())
    }

    pub(super) fn add(&self, call: ToolCall) -> Result<(), CallRefusal> {
        let control = Arc::new(CallControl::default());
        let id = call.id.to_string();
        let mut running = lock(&self.running);
        if running.contains_key(&id) {
            return Err(CallRefusal::SameId);
        }
        let waiting = self.waiting.as_ref().ok_or(CallRefusal::TooMany)?;
        match waiting.try_send((call, Arc::clone(&control))) {
            Ok(()) => {
                running.insert(id, control);
                Ok(())
            }
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => Err(CallRefusal::TooMany),
        }
    }

    /// Cancels a call. Ids of other requests, and of calls that have ended, are ignored.
    pub(super) fn cancel(&self, id: &Value) {
        if let Some(control) = lock(&self.running).get(&id.to_string()) {
            control.cancel();
        }
    }

    /// Waits until all accepted calls are answered. Cancels those that take longer than [`TIME_AFTER_END`].
    pub(super) fn finish(mut self) {
        self.waiting = None;
        if let Some(worker) = self.worker.take() {
            let ended = Instant::now();
            while !worker.is_finished() && ended.elapsed() < TIME_AFTER_END {
                thread::sleep(LOOK);
            }
            lock(&self.running).values().for_each(|control| control.cancel());
            // A panic of the worker was printed on stderr.
            let _ = worker.join();
        }
    }
}

fn run_all(
    calls: &Receiver<(ToolCall, Arc<CallControl>)>,
    tools: &Arc<MemoryTools>,
    running: &RunningCalls,
    out: &Arc<MessageWriter>,
) {
    let abandoned = Arc::new(AtomicUsize::new(0));
    for (call, control) in calls {
        let result = match control.is_cancelled() {
            true => Value::Null,
            false => run_one(&call, &control, tools, &abandoned, out),
        };
        // The reader cancels under the same lock, so that no answer follows a cancellation.
        let mut running = lock(running);
        running.remove(&call.id.to_string());
        if control.is_cancelled() {
            drop(running);
            // No client knows the handle. It may have guessed it, and closed the source.
            if let Some(handle) = opened_handle(&call.tool, &result["structuredContent"]) {
                let _ = tools.close(handle);
            }
            continue;
        }
        let message = json!({ "jsonrpc": "2.0", "id": call.id, "result": result });
        if out.write(&message).is_err() {
            // The client is gone. `serve` ends when the input ends.
            return;
        }
    }
}

/// The handle of the source that an answer has opened.
fn opened_handle<'a>(tool: &str, structured: &'a Value) -> Option<&'a str> {
    structured["handle"].as_str().filter(|_| ["open", "capture"].contains(&tool))
}

/// Marks the end of a tool's thread, also if the tool panics.
struct CallEnd {
    is_over: Arc<AtomicBool>,
    abandoned: Arc<AtomicUsize>,
    tools: Arc<MemoryTools>,
    /// The source that the call has opened.
    handle: Option<String>,
}

impl Drop for CallEnd {
    fn drop(&mut self) {
        // The queue set the mark first, so it counts this thread as abandoned.
        if self.is_over.swap(true, Ordering::AcqRel) {
            // No client gets the answer with this handle.
            if let Some(handle) = &self.handle {
                let _ = self.tools.close(handle);
            }
            self.abandoned.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Runs a tool on a thread. Returns when the tool has ended, or when the call is cancelled.
fn run_one(
    call: &ToolCall,
    control: &Arc<CallControl>,
    tools: &Arc<MemoryTools>,
    abandoned: &Arc<AtomicUsize>,
    out: &MessageWriter,
) -> Value {
    let fail = |reason: &str| tool_error(reason, call.is_modern);
    if abandoned.load(Ordering::Relaxed) >= MAX_ABANDONED {
        return fail("cancelled calls still work; try again when they have ended");
    }
    let (answer, answers) = mpsc::channel();
    let (tools, shared) = (Arc::clone(tools), Arc::clone(control));
    let (name, arguments) = (call.tool.clone(), call.arguments.clone());
    let (is_over, counted) = (Arc::new(AtomicBool::new(false)), Arc::clone(abandoned));
    let end = CallEnd { is_over: Arc::clone(&is_over), abandoned: counted, tools, handle: None };
    let work = move || {
        let mut end = end;
        let result = tool::call(&end.tools, &name, &arguments, &shared);
        let opened = result.as_ref().ok().and_then(|answer| opened_handle(&name, &answer.structured));
        end.handle = opened.map(str::to_owned);
        // The receiver is gone if the call was cancelled.
        let _ = answer.send(result);
    };
    if let Err(error) = thread::Builder::new().name("tool".to_owned()).stack_size(STACK).spawn(work) {
        return fail(&format!("no thread can be started: {error}"));
    }
    let mut progress = ProgressMessages::new(call, out);
    loop {
        match answers.recv_timeout(LOOK) {
            Ok(Ok(answer)) => return answer.into_result(call.is_modern),
            Ok(Err(reason)) => return fail(&reason),
            Err(RecvTimeoutError::Disconnected) => {
                return fail("the program has a defect: this call panicked; other calls still work");
            }
            Err(RecvTimeoutError::Timeout) if control.is_cancelled() => {
                // Counts before the mark is set: the thread subtracts only after it sees the mark.
                abandoned.fetch_add(1, Ordering::Relaxed);
                if !is_over.swap(true, Ordering::AcqRel) {
                    return Value::Null;
                }
                abandoned.fetch_sub(1, Ordering::Relaxed);
                // The thread had ended, with an answer.
                return match answers.try_recv() {
                    Ok(Ok(answer)) => answer.into_result(call.is_modern),
                    _ => Value::Null,
                };
            }
            Err(RecvTimeoutError::Timeout) => progress.tick(control),
        }
    }
}

/// A result that tells the assistant what went wrong, and what to do.
pub(super) fn tool_error(reason: &str, is_modern: bool) -> Value {
    let text = super::page::cut(reason, 1000);
    let mut result = json!({ "content": [{ "type": "text", "text": text }], "isError": true });
    if is_modern {
        result["resultType"] = json!("complete");
    }
    result
}

/// The messages about the progress of one call: a number that always grows, and a text.
struct ProgressMessages<'a> {
    token: Option<&'a Value>,
    out: &'a MessageWriter,
    started: Instant,
    sent: u64,
    next: Duration,
}

impl<'a> ProgressMessages<'a> {
    fn new(call: &'a ToolCall, out: &'a MessageWriter) -> Self {
        let token = call.progress_token.as_ref();
        let mut messages = Self { token, out, started: Instant::now(), sent: 0, next: Duration::ZERO };
        messages.send("started");
        messages
    }

    fn tick(&mut self, control: &CallControl) {
        if self.started.elapsed() >= self.next {
            let message = control.message();
            self.send(if message.is_empty() { "working" } else { &message });
        }
    }

    fn send(&mut self, message: &str) {
        let Some(token) = self.token else { return };
        self.sent += 1;
        self.next = self.started.elapsed() + PROGRESS;
        let params = json!({ "progressToken": token, "progress": self.sent, "message": message });
        let message = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
        // If the client is gone, the next answer finds it out.
        let _ = self.out.write(&message);
    }
}
