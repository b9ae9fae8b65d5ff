//! Heap graphs: snapshots, census, dominators and shortest paths, with the answers of Firefox.
#![deny(unsafe_code)]
