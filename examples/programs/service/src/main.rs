//! A service that keeps values for its clients, and clients that use it. Lines that end in `// +` are added to account
//! for memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use memory_reporter::tags::Tag; // +
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Barrier;

memory_reporter::global_allocator!(tikv_jemallocator::Jemalloc); // +

const CLIENTS: usize = 100;

/// The values of the clients.
static STORE: Mutex<Option<HashMap<String, Vec<u8>>>> = Mutex::new(None);
memory_reporter::define_reporter!("explicit/store", Heap, &STORE, "Memory used by the values of clients."); // +

/// Answers `put KEY BYTES` and `get KEY`, one line each.
async fn serve(stream: TcpStream) -> std::io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut lines = BufReader::with_capacity(16 << 10, reader).lines();
    while let Some(line) = lines.next_line().await? {
        let mut words = line.split(' ');
        let answer = match (words.next(), words.next(), words.next()) {
            (Some("put"), Some(key), Some(bytes)) => {
                let value = vec![1; bytes.parse().unwrap_or(0)];
                STORE.lock().unwrap().get_or_insert_default().insert(key.to_owned(), value);
                "ok\n".to_owned()
            }
            (Some("get"), Some(key), None) => {
                let length = STORE.lock().unwrap().as_ref().and_then(|store| store.get(key)).map(Vec::len);
                format!("{length:?}\n")
            }
            _ => "what?\n".to_owned(),
        };
        writer.write_all(answer.as_bytes()).await?;
    }
    Ok(())
}

async fn client(number: usize, address: std::net::SocketAddr, all: Arc<Barrier>) -> std::io::Result<()> {
    let (reader, mut writer) = TcpStream::connect(address).await?.into_split();
    let mut answers = BufReader::new(reader).lines();
    for i in 0..200 {
        writer.write_all(format!("put client-{number}/key-{i} {}\n", (number * 13 + i * 7) % 4000).as_bytes()).await?;
        answers.next_line().await?;
    }
    all.wait().await; // the peak
    all.wait().await;
    Ok(())
}

fn main() -> std::io::Result<()> {
    let runtime_tag = Tag::new("explicit/tokio"); // +
    let guard = runtime_tag.enter(); // +
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .on_thread_start(move || runtime_tag.keep()) // +
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let task = Tag::new("explicit/connections").future(serve(stream)); // +
                let task = async { drop(task.await) };
                tokio::spawn(task);
            }
        });
        let all = Arc::new(Barrier::new(CLIENTS + 1));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| client(number, address, Arc::clone(&all)))
            .map(|client| Tag::new("explicit/clients").future(client)) // +
            .map(tokio::spawn)
            .collect();
        all.wait().await;
        println!("{}", about_memory::text(&memory_reporter::collect_reports(&Default::default())).verbose(true)); // +
        all.wait().await;
        for client in clients {
            client.await.expect("no client panics")?;
        }
        std::io::Result::Ok(())
    })?;
    drop(guard); // +
    Ok(())
}
