//! Owns the worker threads: each takes a query from one channel, and sends the answer to another.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use memory_reporter::MallocSizeOf;

use crate::engine::Engine;
use crate::query_cache::{Answer, Query};
use crate::ranking::Scratch;

/// The maximum number of queries that may wait for a worker.
const WAITING: usize = 64;

struct Job {
    query: Query,
    reply: Sender<Arc<Answer>>,
}

/// The state of each worker. A worker locks its state while it answers.
#[derive(Debug, MallocSizeOf)]
pub(crate) struct WorkerStates(Vec<Mutex<Scratch>>);

impl WorkerStates {
    /// The states, in the order of the workers' numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Mutex<Scratch>> {
        self.0.iter()
    }
}

/// Threads that share an engine. The threads end when this value is dropped.
pub(crate) struct Workers {
    pub(crate) states: Arc<WorkerStates>,
    /// The channel to the workers; `None` makes the workers end.
    jobs: Option<SyncSender<Job>>,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts this many workers.
    pub(crate) fn start(engine: &Arc<Engine>, count: usize) -> io::Result<Self> {
        let (jobs, waiting) = mpsc::sync_channel(WAITING);
        let waiting = Arc::new(Mutex::new(waiting));
        let states = Arc::new(WorkerStates((0..count).map(|_| Mutex::default()).collect()));
        let spawn = |number: usize| {
            let (engine, waiting, states) = (Arc::clone(engine), Arc::clone(&waiting), Arc::clone(&states));
            let name = format!("worker {number}");
            thread::Builder::new().name(name).spawn(move || work(&engine, &waiting, &states.0[number]))
        };
        let threads = (0..count).map(spawn).collect::<io::Result<_>>()?;
        Ok(Self { states, jobs: Some(jobs), threads })
    }

    /// Passes all queries to the workers, and calls `answered` with each answer.
    pub(crate) fn answer_all(&self, queries: Vec<Query>, mut answered: impl FnMut(Arc<Answer>)) {
        let Some(jobs) = &self.jobs else { return };
        let (reply, answers) = mpsc::channel();
        for query in queries {
            let job = Job { query, reply: reply.clone() };
            jobs.send(job).expect("the workers wait for jobs as long as this sender lives");
            answers.try_iter().for_each(&mut answered);
        }
        drop(reply);
        answers.into_iter().for_each(answered);
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // A worker that panicked has printed its message to stderr.
            let _ = thread.join();
        }
    }
}

fn work(engine: &Engine, waiting: &Mutex<Receiver<Job>>, state: &Mutex<Scratch>) {
    // This releases the lock before the worker answers the query.
    let next = || waiting.lock().expect("no thread panics while it waits for a job").recv();
    while let Ok(Job { query, reply }) = next() {
        let answer = {
            let mut scratch = state.lock().expect("only this worker panics while it holds its state");
            engine.answer(&query, &mut scratch)
        };
        // Sending fails if the receiver was dropped, which is not an error.
        let _ = reply.send(answer);
    }
}
