//! Damaged snapshots result in an error or a graph, not in a panic, and take no more memory than intact ones.

use std::io::Read as _;

use flate2::Compression;
use flate2::read::{GzDecoder, GzEncoder};
use heap_graph::census::TreeOptions;
use heap_graph::snapshot::{SnapshotReadOptions, read_from};
use heap_graph::{Breakdown, CensusTree, DominatorTree, Graph, NodeIndex, census, shortest_paths};

use crate::golden;

/// Runs every analysis once.
fn ask(graph: &Graph) {
    for (_, json) in Breakdown::PRESETS {
        if let Ok(report) = census(graph, &Breakdown::parse(json).unwrap()) {
            report.to_json();
            CensusTree::new(&report, &TreeOptions::new().invert(true).filter("a")).to_json();
        }
    }
    let tree = DominatorTree::new(graph);
    let last = graph.nodes().last().unwrap().index();
    assert!(tree.retained_size(NodeIndex::ROOT).is_some());
    shortest_paths(graph, NodeIndex::ROOT, &[last], 3).to_json();
    crate::write::written(graph);
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    if bytes.is_empty() {
        return;
    }
    let at = random.below(bytes.len());
    match random.below(6) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = random.below(256) as u8,
        2 => bytes[at] = 0xff,
        3 => bytes.truncate(at),
        4 => {
            bytes.remove(at);
        }
        _ => {
            let copied: Vec<u8> = bytes[at..(at + random.below(40)).min(bytes.len())].to_vec();
            let to = random.below(bytes.len());
            bytes.splice(to..to, copied);
        }
    }
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    GzEncoder::new(bytes, Compression::new(1)).read_to_end(&mut file).unwrap();
    file
}

#[test]
fn no_damage_is_a_panic() {
    let mut random = Random(0x5eed_cafe);
    let (mut taken, mut refused) = (0, 0);
    for (name, _) in golden::entries(&golden::raw("handmade/verdicts.json")) {
        let file = std::fs::read(golden::path(&format!("handmade/{name}.fxsnapshot"))).unwrap();
        let mut unpacked = Vec::new();
        // Keeps the part of the file that can be unpacked.
        let _ = GzDecoder::new(&file[..]).read_to_end(&mut unpacked);
        let is_big = file.len() > 10_000;
        for round in 0..if is_big { 4 } else { 40 } {
            let mut bytes = if round % 3 == 0 { file.clone() } else { unpacked.clone() };
            for _ in 0..=random.below(3) {
                mutate(&mut bytes, &mut random);
            }
            let bytes = if round % 3 == 0 { bytes } else { packed(&bytes) };
            match read_from(&bytes[..], &SnapshotReadOptions::new()) {
                Ok(graph) => {
                    taken += 1;
                    ask(&graph);
                }
                Err(error) => {
                    refused += 1;
                    assert!(!error.to_string().contains('\n'), "{error}");
                }
            }
        }
    }
    assert!(taken > 100 && refused > 1_000, "{taken} taken, {refused} refused");
}

#[test]
fn no_damage_of_a_real_heap_is_a_panic() {
    let mut random = Random(77);
    let all = if std::env::var_os("THOROUGH").is_some() { 60 } else { 20 };
    for (name, rounds) in [("small-a", all), ("small-b", all), ("medium", all / 5)] {
        let file = std::fs::read(golden::path(&format!("{name}.fxsnapshot"))).unwrap();
        let mut unpacked = Vec::new();
        GzDecoder::new(&file[..]).read_to_end(&mut unpacked).unwrap();
        for round in 0..rounds {
            let mut bytes = unpacked.clone();
            mutate(&mut bytes, &mut random);
            if let Ok(graph) = read_from(&packed(&bytes)[..], &SnapshotReadOptions::new())
                && round % 10 == 0
            {
                ask(&graph);
            }
        }
    }
}

#[test]
fn a_length_without_bytes_costs_no_memory() {
    // Metadata that claims 60,000,000 bytes but has 5, and metadata that claims more than the limit.
    for length in [60_000_000_u32, 3_000_000_000] {
        let mut bytes = Vec::new();
        let mut rest = length;
        while rest >= 0x80 {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
        bytes.extend([0; 5]);
        let error = read_from(&packed(&bytes)[..], &SnapshotReadOptions::new()).unwrap_err().to_string();
        let expected = match length {
            60_000_000 => "message 0 (Metadata), at unpacked byte 4: truncated, 59999995 bytes are missing",
            _ => "message 0 (Metadata), at unpacked byte 0: too long: 3000000000 bytes",
        };
        assert_eq!(error, expected);
    }
}
