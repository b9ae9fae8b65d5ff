//! `load [ADDRESS] [REQUESTS]` requests pages of `service` on four connections, like browsers with many sessions. It
//! prints the number of bytes that it received. It waits until the server listens, and ends when the server ends.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

async fn visit(address: String, client: u64, requests: u64) -> std::io::Result<u64> {
    let stream = loop {
        match TcpStream::connect(&address).await {
            Ok(stream) => break stream,
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    };
    let mut stream = BufReader::new(stream);
    let mut bytes = 0;
    for request in 0..requests {
        let hash = (request * 4 + client + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let (page, session) = (hash >> 40 & 0x7ff, request * 4 + client);
        let head = format!(
            "GET /pages/{page}?session={}&agent=Mozilla%2F5.0+(X11;+Linux+x86_64)+Firefox%2F{} HTTP/1.1\r\nHost: {address}\r\n\r\n",
            session / 8,
            100 + hash % 50
        );
        stream.get_mut().write_all(head.as_bytes()).await?;
        let mut length = 0;
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(bytes);
            }
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.trim().parse().unwrap_or(0);
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        bytes += length as u64;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(bytes)
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:8080".into());
    let requests: u64 = arguments.next().and_then(|requests| requests.parse().ok()).unwrap_or(200_000);
    let clients: Vec<_> =
        (0..4).map(|client| tokio::spawn(visit(address.clone(), client, requests / 4))).collect();
    let mut bytes = 0;
    for client in clients {
        bytes += client.await.map_or(0, |answer| answer.unwrap_or(0));
    }
    println!("{bytes} bytes came back");
}
