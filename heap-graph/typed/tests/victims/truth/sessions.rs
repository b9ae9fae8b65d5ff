//! Tasks of tokio, channels, and locks and maps of crates.

#![allow(dead_code, reason = "only the types and the blocks count")]
#![allow(clippy::iter_over_hash_type, reason = "the order of the lines does not count")]

#[path = "truth.rs"]
mod truth;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hint::black_box;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tokio::sync::{Mutex, RwLock, mpsc};

struct Session {
    id: u64,
    name: String,
    inbox: Vec<Bytes>,
    about: HashMap<String, String>,
}

enum Message {
    Put(String, Vec<u8>),
    Stop,
}

struct App {
    sessions: dashmap::DashMap<u64, Arc<Mutex<Session>>>,
    cache: RwLock<BTreeMap<String, Arc<[u8]>>>,
    log: parking_lot::Mutex<VecDeque<String>>,
}

static APP: OnceLock<Arc<App>> = OnceLock::new();

async fn handle(app: Arc<App>, id: u64, mut inbox: mpsc::Receiver<Message>) -> usize {
    let kept: Vec<String> = (0..id % 10 + 1).map(|number| format!("kept {id} {number}")).collect();
    truth::is("locals of tasks", kept.as_ptr(), "[String]");
    kept.iter().for_each(|one| truth::is("locals of tasks", one.as_ptr(), "str"));
    let mut count = 0;
    while let Some(message) = inbox.recv().await {
        match message {
            Message::Put(key, value) => {
                app.cache.write().await.insert(key, value.into());
                count += 1;
            }
            Message::Stop => break,
        }
    }
    count + kept.len()
}

fn session(id: u64) -> Session {
    let inbox: Vec<Bytes> = (0..id % 4).map(|number| Bytes::from(vec![number as u8; 100])).collect();
    inbox.iter().for_each(|one| truth::is("Bytes", one.as_ptr(), "[u8]"));
    let about: HashMap<String, String> =
        (0..id % 3).map(|number| (format!("k{number}"), format!("v{id}"))).collect();
    for (key, value) in &about {
        truth::is("HashMap: tables", key, "table (String, String)");
        truth::is("HashMap: strings", key.as_ptr(), "str");
        truth::is("HashMap: strings", value.as_ptr(), "str");
    }
    Session { id, name: format!("session {id}"), inbox, about }
}

fn main() {
    truth::open();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let app = Arc::new(App {
        sessions: dashmap::DashMap::new(),
        cache: RwLock::new(BTreeMap::new()),
        log: parking_lot::Mutex::new(VecDeque::new()),
    });
    let _ = APP.set(app.clone());
    let (mut senders, mut tasks) = (Vec::new(), Vec::new());
    runtime.block_on(async {
        for id in 0..300_u64 {
            let (sender, receiver) = mpsc::channel(16);
            let session = Arc::new(Mutex::new(session(id)));
            truth::is(
                "Arc<Mutex>",
                &raw const *session,
                "ArcInner<tokio::sync::mutex::Mutex<typed_heap_sessions::Session>>",
            );
            app.sessions.insert(id, session);
            app.log.lock().push_back(format!("new session {id}"));
            tasks.push(tokio::spawn(handle(app.clone(), id, receiver)));
            for number in 0..id % 7 {
                let message = Message::Put(format!("key {id} {number}"), vec![number as u8; 64]);
                assert!(sender.send(message).await.is_ok());
            }
            senders.push(sender);
        }
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        for (key, value) in &*app.cache.read().await {
            truth::is("BTreeMap: nodes", key, "*Node<String, Arc<[u8]>>");
            truth::is("BTreeMap: keys", key.as_ptr(), "str");
            truth::is("Arc<[u8]>", value.as_ptr(), "ArcInner<[u8]>");
        }
    });
    for one in &*app.log.lock() {
        truth::is("VecDeque", one, "[String]");
        truth::is("VecDeque", one.as_ptr(), "str");
    }
    for one in &app.sessions {
        truth::is(
            "dashmap",
            one.key(),
            "*(u64, dashmap::util::SharedValue<Arc<tokio::sync::mutex::Mutex<typed_heap_sessions::Session>>>)",
        );
    }
    truth::wait();
    black_box((&app, &senders, &tasks));
}
