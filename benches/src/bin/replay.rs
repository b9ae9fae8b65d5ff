//! Measures the replay of a recording of 10,000,000 events: the replay to the end, the state at the peak, the history,
//! the leaks and the time line.
//!
//! The program makes the recording itself: eight threads, 4,000 stacks, 200,000 live blocks, sizes and lifetimes of
//! all orders of magnitude. `--write FILE` only writes the recording to this file.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a bench")]

use std::fs;
use std::hint::black_box;
use std::time::Instant;

use dmd::analyze::program::{LeakOptions, Leaks, ProgramOptions, Timeline, TimelineOptions, UsageHistory};
use dmd::analyze::recording::{Moment, Recording};
use dmd_format::recording::{
    BlockAction, BlockEvent, ChunkKind, EVENT_BUFFER, EventEncoder, MAGIC, NodeEncoder, RecordedBlock,
    RecordedModule, RecordedProcess, RecordingEnd, StackNode, encode_modules, push_chunk,
};

const EVENTS: u64 = 10_000_000;
const THREADS: usize = 8;
const STACKS: u32 = 4000;
/// The number of live blocks of a thread.
const LIVE: usize = 25_000;

/// A generator of pseudo-random numbers (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

struct Thread {
    encoder: Box<EventEncoder>,
    payload: Vec<u8>,
    live: Vec<u64>,
    next: u64,
}

fn recording() -> Vec<u8> {
    let mut file = MAGIC.to_vec();
    let mut about = RecordedProcess::new();
    (about.process, about.tick_picoseconds) = (1, 10_000);
    push_chunk(&mut file, ChunkKind::About, &about.encode());
    let (start, end) = (0x5000_0000, 0x5010_0000);
    let module = RecordedModule {
        path: b"/app/server".to_vec(),
        start,
        end,
        bias: start,
        ..RecordedModule::default()
    };
    push_chunk(&mut file, ChunkKind::Modules, &encode_modules(&[module]));
    let mut nodes = NodeEncoder::new();
    for id in 1..=STACKS {
        nodes.push(StackNode { id, parent: id / 4, pc: 0x5000_0000 + 16 * u64::from(id) });
    }
    push_chunk(&mut file, ChunkKind::Nodes, nodes.payload());
    let mut random = Random(88_172_645_463_325_252);
    let mut threads: Vec<Thread> = (0..THREADS as u64)
        .map(|thread| {
            let mut payload = vec![0; EVENT_BUFFER];
            let mut encoder = Box::new(EventEncoder::new());
            encoder.start(&mut payload, thread as u32 + 1, 0);
            Thread { encoder, payload, live: Vec::new(), next: (thread + 1) << 40 }
        })
        .collect();
    let flush = |thread: &mut Thread, number: usize, tick: u64, file: &mut Vec<u8>| {
        push_chunk(file, ChunkKind::Events, &thread.payload[..thread.encoder.len()]);
        thread.encoder.start(&mut thread.payload, number as u32 + 1, tick);
    };
    let mut tick = 0;
    for _ in 0..EVENTS {
        tick += 3 + random.next() % 8;
        let number = (random.next() >> 20) as usize % THREADS;
        let thread = &mut threads[number];
        let word = random.next();
        let is_end = thread.live.len() >= LIVE || (!thread.live.is_empty() && word & 3 == 0);
        let (address, what) = if is_end {
            // Most blocks are freed soon.
            let age = if word & 14 == 0 { (word >> 8) as usize % thread.live.len() } else { 0 };
            let place = thread.live.len() - 1 - age;
            (thread.live.swap_remove(place), BlockAction::End(None))
        } else {
            let requested = 1 + (word >> 8) % (8 << (word >> 60));
            thread.next += 16 * (1 + requested / 16);
            thread.live.push(thread.next);
            let stack = 1 + (word >> 32) as u32 % STACKS;
            (thread.next, BlockAction::Begin(RecordedBlock { requested, slop: 0, stack }))
        };
        if !thread.encoder.has_room(&thread.payload, 1) {
            flush(thread, number, tick, &mut file);
        }
        assert!(thread.encoder.push(&mut thread.payload, &BlockEvent { tick, address, what }));
    }
    for (number, thread) in threads.iter_mut().enumerate() {
        flush(thread, number, tick, &mut file);
    }
    push_chunk(&mut file, ChunkKind::End, &RecordingEnd::new().encode());
    file
}

/// The peak of the process's resident memory, in MB.
fn peak_of_process() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or_default() / 1024
}

/// The CPU time of the main thread, in nanoseconds.
fn processor_time() -> f64 {
    let text = fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn timed<T>(what: &str, run: impl FnOnce() -> T) -> T {
    let (start, before) = (Instant::now(), processor_time());
    let result = black_box(run());
    let processor = (processor_time() - before) / 1e9;
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{what:<22} {seconds:>6.2} s, processor {processor:.2} s, process at most {} MB",
        peak_of_process()
    );
    result
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [option, path] = &arguments[..]
        && option == "--write"
    {
        fs::write(path, recording()).unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bench.dmdrec");
    if std::env::args().nth(1).as_deref() != Some("--replay") {
        let bytes = recording();
        println!("{EVENTS} events, {:.1} bytes each", bytes.len() as f64 / EVENTS as f64);
        fs::write(&path, bytes).unwrap();
        // Run the replay in another process, so that the memory contains only the replay.
        let this = std::env::current_exe().unwrap();
        let status = std::process::Command::new(this).arg("--replay").arg(&path).status().unwrap();
        assert!(status.success());
        return;
    }
    let path = std::env::args().nth(2).unwrap();
    let mut recording = timed("open", || Recording::open(&path).unwrap());
    timed("replay to the end", || recording.outline().unwrap());
    timed("the state at the peak", || recording.state_at(Moment::Peak).unwrap());
    timed("the history", || UsageHistory::new(&mut recording, &ProgramOptions::new(), |_| ()).unwrap());
    timed("the leaks", || Leaks::new(&mut recording, &LeakOptions::new(), |_| ()).unwrap());
    let timeline = timed("the time line", || {
        let (options, bounds) = (ProgramOptions::new(), TimelineOptions::new());
        Timeline::new(&mut recording, &options, &bounds, |_| ()).unwrap()
    });
    println!(
        "{} slices, {} rows, {} cells",
        timeline.bounds().len(),
        timeline.rows().rows().len(),
        timeline.cells().len()
    );
    assert!(recording.warnings().is_empty(), "{:?}", recording.warnings());
}
