//! Pushes to a stub of Pyroscope. The stub decodes them by push/v1/push.proto and profile.proto.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memory_endpoint::pyroscope::{PushError, PushRequest, PyroscopePush};
use memory_endpoint::{Endpoint, EndpointOptions};
use serde_json::Value;

use crate::program::{self, by_reporter, names_bytes, profile};

/// A request as the stub received it.
struct Received {
    first_line: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

fn receive(stream: &TcpStream) -> io::Result<Received> {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let headers: BTreeMap<String, String> = lines[1..]
        .iter()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let mut body = vec![0; headers["content-length"].parse().unwrap()];
    reader.read_exact(&mut body)?;
    Ok(Received { first_line: lines[0].clone(), headers, body })
}

/// Starts a server that answers this many pushes with a status, and sends the pushes to the receiver.
fn server(status: u16, pushes: usize) -> (String, mpsc::Receiver<Received>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (send, received) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming().take(pushes) {
            let mut stream = stream.unwrap();
            send.send(receive(&stream).unwrap()).unwrap();
            write!(stream, "HTTP/1.1 {status} x\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}")
                .unwrap();
        }
    });
    (address, received)
}

/// The HTTP client of the program.
fn post(request: &PushRequest<'_>) -> io::Result<u16> {
    let (host, path) = request.url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host)?;
    write!(stream, "POST /{path} HTTP/1.1\r\nhost: {host}\r\ncontent-length: {}\r\n", request.body.len())?;
    for (name, value) in &request.headers {
        write!(stream, "{name}: {value}\r\n")?;
    }
    stream.write_all(b"\r\n")?;
    stream.write_all(request.body)?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    Ok(line.split(' ').nth(1).unwrap().parse().unwrap())
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// Decodes a message `PushRequest`: its labels and its profile.
fn decoded(received: &Received) -> (Vec<(String, String)>, Vec<u8>) {
    assert_eq!(received.first_line, "POST /push.v1.PusherService/Push HTTP/1.1");
    assert_eq!(received.headers["content-type"], "application/json");
    let message: Value = serde_json::from_slice(&received.body).unwrap();
    assert_eq!(keys(&message), ["series"]);
    let [series] = &message["series"].as_array().unwrap()[..] else { panic!("{message}") };
    assert_eq!(keys(series), ["labels", "samples"]);
    let labels = series["labels"].as_array().unwrap().iter().map(|label| {
        assert_eq!(keys(label), ["name", "value"]);
        let text = |key: &str| label[key].as_str().unwrap().to_owned();
        (text("name"), text("value"))
    });
    let labels = labels.collect();
    let [sample] = &series["samples"].as_array().unwrap()[..] else { panic!("{message}") };
    assert_eq!(keys(sample), ["ID", "rawProfile"]);
    let id: Vec<usize> = sample["ID"].as_str().unwrap().split('-').map(str::len).collect();
    assert_eq!(id, [8, 4, 4, 4, 12]);
    (labels, STANDARD.decode(sample["rawProfile"].as_str().unwrap()).unwrap())
}

#[test]
fn a_push_has_the_profile_and_its_labels() {
    let _alone = program::alone();
    let (address, received) = server(200, 1);
    let push = PyroscopePush::new(&format!("{address}/"), "shop \"1\"")
        .label("region", "eu")
        .label("region", "us")
        .tenant("team");
    push.once(&Endpoint::new(), post).unwrap();
    let received = received.recv().unwrap();
    assert_eq!(received.headers["x-scope-orgid"], "team");
    let (labels, body) = decoded(&received);
    let expected = [("__name__", "memory"), ("service_name", "shop \"1\""), ("region", "us")];
    assert_eq!(labels, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(by_reporter(&profile(&body))["explicit/names"], names_bytes());
}

#[test]
fn errors_say_who_failed() {
    let _alone = program::alone();
    let endpoint = Endpoint::new();
    let (address, _received) = server(401, 1);
    let push = PyroscopePush::new(&address, "shop");
    let refused = push.once(&endpoint, post).unwrap_err();
    assert_eq!(refused.to_string(), "the server refused the profile with the status 401");
    let unsent = push.once(&endpoint, |_| Err(io::Error::other("no network"))).unwrap_err();
    assert_eq!(unsent.to_string(), "the profile cannot be sent: no network");
    let small = Endpoint::with_options(EndpointOptions::new().max_bytes(10));
    let none = push.once(&small, |_| unreachable!("there is no profile")).unwrap_err();
    assert!(matches!(&none, PushError::NoProfile(503, line) if line.contains("max_bytes")), "{none}");
}

#[test]
fn pushes_repeat_until_they_are_dropped() {
    let _alone = program::alone();
    let (address, received) = server(200, 3);
    let (send, sent) = mpsc::channel();
    let mut count = 0;
    let client = move |request: &PushRequest<'_>| {
        count += 1;
        // The second push fails, and the program continues.
        let status = if count == 2 { Err(io::Error::other("no network")) } else { post(request) };
        let _ = send.send(());
        status
    };
    let push = PyroscopePush::new(&address, "shop").interval(Duration::from_millis(1));
    let pushing = push.start(Arc::new(Endpoint::new()), client).unwrap();
    for _ in 0..3 {
        sent.recv().unwrap();
    }
    while pushing.pushed() < 2 {
        thread::yield_now();
    }
    let (failed, error) = pushing.failed();
    assert!(failed >= 1);
    assert!(error.unwrap().starts_with("the profile cannot be sent: "));
    drop(pushing);
    for received in received.iter().take(2) {
        assert!(by_reporter(&profile(&decoded(&received).1))["explicit/names"] > 0);
    }
}
