//! The peak memory of reading and writing heap snapshots, including damaged files.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::io::Read as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::{GzDecoder, GzEncoder};
use heap_graph::graph::GraphError;
use heap_graph::snapshot::SnapshotError;
use heap_graph::snapshot::{SnapshotReadOptions, SnapshotWriteOptions, read_from, write};
use heap_graph::{Graph, GraphBuilder, NodeId, NodeParts};
use tests::{Random, peak};

/// The maximum memory for each unpacked byte, in bytes, even while arrays grow. Files with the smallest nodes need 5
/// bytes of memory for each unpacked byte.
const FOR_EACH_BYTE: usize = 16;
/// The memory for buffers and for the decompressor, in bytes.
const ALWAYS: usize = 600_000;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../heap-graph/tests/golden")
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    GzEncoder::new(bytes, Compression::new(1)).read_to_end(&mut file).unwrap();
    file
}

/// Reads a file, and asserts that the memory stays within the limit for its size.
fn reads_within_bounds(unpacked: &[u8]) -> Result<Graph, SnapshotError> {
    let file = packed(unpacked);
    let (result, bytes) = peak(|| read_from(&file[..], &SnapshotReadOptions::new()));
    let bound = ALWAYS + FOR_EACH_BYTE * unpacked.len();
    assert!(
        bytes <= bound,
        "{bytes} bytes for {} bytes unpacked, {:?}",
        unpacked.len(),
        result.as_ref().err()
    );
    result
}

fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(bytes.len().max(1) as u64) as usize;
    match random.below(4) {
        _ if bytes.is_empty() => {}
        0 => bytes[at] = random.below(256) as u8,
        1 => bytes[at] = 0xff,
        2 => bytes.truncate(at),
        _ => {
            let copied = bytes[at..(at + 40).min(bytes.len())].to_vec();
            bytes.splice(at..at, copied);
        }
    }
}

#[test]
fn a_damaged_file_takes_no_more_memory_than_its_bytes_are_worth() {
    let mut random = Random::new(0xb17e5);
    let mut read = 0;
    let folders = [golden().join("handmade"), golden()];
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let mut files: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "fxsnapshot"));
    files.sort();
    for path in &files {
        let mut unpacked = Vec::new();
        // Unpacks as much of the file as possible.
        let _ = GzDecoder::new(&std::fs::read(path).unwrap()[..]).read_to_end(&mut unpacked);
        let rounds = if unpacked.len() > 100_000 { 3 } else { 40 };
        for _ in 0..rounds {
            let mut bytes = unpacked.clone();
            for _ in 0..random.below(4) {
                damage(&mut bytes, &mut random);
            }
            read += usize::from(reads_within_bounds(&bytes).is_ok());
        }
    }
    assert!(files.len() > 80 && read > 100, "{} files, {read} read", files.len());
}

/// A list of nodes. Each node has its own name, or all have the same name.
fn list(nodes: u64, has_own_names: bool) -> Result<Graph, GraphError> {
    let mut builder = GraphBuilder::new();
    let next = builder.text("next")?;
    for node in 0..nodes {
        let name = if has_own_names { builder.text(&format!("Node {node}"))? } else { next };
        builder.node(NodeParts::new(NodeId(16 + node * 16), 16, name))?;
        if node + 1 < nodes {
            builder.edge(NodeId(32 + node * 16), Some(next))?;
        }
    }
    builder.finish()
}

#[test]
fn the_smallest_nodes_take_no_more_than_their_bytes_are_worth() {
    for has_own_names in [false, true] {
        let graph = list(100_000, has_own_names).unwrap();
        let file = write(&graph, Vec::new(), &SnapshotWriteOptions::new()).unwrap();
        let mut unpacked = Vec::new();
        GzDecoder::new(&file[..]).read_to_end(&mut unpacked).unwrap();
        assert_eq!(reads_within_bounds(&unpacked).unwrap().node_count(), 100_000);
    }
}

#[test]
fn writing_holds_only_the_numbers_of_texts() {
    for has_own_names in [false, true] {
        let graph = list(100_000, has_own_names).unwrap();
        let (file, bytes) = peak(|| write(&graph, std::io::sink(), &SnapshotWriteOptions::new()).is_ok());
        let texts = if has_own_names { 100_001 } else { 1 };
        assert!(file && bytes <= ALWAYS + 12 * texts, "{bytes} bytes");
    }
}
