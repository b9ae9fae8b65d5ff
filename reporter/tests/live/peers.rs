//! Peers that hang or die, and too many peers.

use std::io::{Read as _, Write as _};
use std::thread;

use memory_reporter::file::{self, ReadOptions};

use super::{Victim, amount, hang_up, until};

#[test]
fn peers_that_say_nothing_are_put_up_with_for_a_while() {
    let victim = Victim::start("listen");
    let silent: Vec<_> = (0..7).map(|_| victim.connect()).collect();
    assert!(victim.ask("\"hello\"").contains("\"pid\""));
    for mut stream in silent {
        // The read returns when the peers' time is over, before the timeout of this test.
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    }
}

#[test]
fn too_many_peers_are_sent_away() {
    let victim = Victim::start("listen");
    let mut silent: Vec<_> = (0..8).map(|_| victim.connect()).collect();
    let answer = victim.ask("\"hello\"");
    assert_eq!(answer, "{\"version\":1,\"error\":\"too many requests at the same time; try again later\"}\n");
    hang_up(&silent.pop().unwrap());
    until("a place", || victim.ask("\"hello\"").contains("\"pid\"").then_some(()));
}

#[test]
fn a_peer_that_dies_costs_nothing() {
    let victim = Victim::start("listen");
    for _ in 0..20 {
        let mut stream = victim.connect();
        stream.write_all(b"{\"version\":1,\"request\":\"report\"}\n").unwrap();
        drop(stream);
        let mut stream = victim.connect();
        stream.write_all(b"{\"version\":1,\"requ").unwrap();
        drop(stream);
    }
    // The program still collects for peers that have hung up, and may refuse further peers meanwhile.
    let answer = until("a place", || {
        Some(victim.ask_for_report("")).filter(|answer| answer.starts_with(&[0x1f, 0x8b]))
    });
    let report = file::read_from(&*answer, &ReadOptions::default()).unwrap();
    assert_eq!(amount(&report, "names/secret"), Some(1));
    let (status, stderr) = victim.end();
    assert!(status.success());
    assert_eq!(stderr, "");
}

#[test]
fn garbage_is_refused_however_it_looks() {
    let victim = Victim::start("listen");
    let mut random = 88_172_645_463_325_252_u64;
    let good = b"{\"version\":1,\"request\":\"report\",\"deadline_ms\":1000}\n";
    for _ in 0..300 {
        let mut damaged = good.to_vec();
        for _ in 0..3 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let at = (random % (damaged.len() as u64 - 1)) as usize;
            damaged[at] = (random >> 32) as u8;
        }
        let answer = victim.ask_raw(&damaged);
        let refused = answer.starts_with(b"{\"version\":1,\"error\":\"") && answer.ends_with(b"}\n");
        // The damage may be in a key that does not matter.
        assert!(refused || answer.starts_with(&[0x1f, 0x8b]), "{:?}", String::from_utf8_lossy(&damaged));
    }
    assert_eq!(amount(&victim.report(""), "names/secret"), Some(1));
}

#[test]
fn several_at_once_are_all_answered() {
    let victim = Victim::start("listen");
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(amount(&victim.report(""), "names/secret"), Some(1)));
        }
    });
}
