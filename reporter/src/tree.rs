//! Reports -> trees.
