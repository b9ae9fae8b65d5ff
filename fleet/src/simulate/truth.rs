//! What was planted.

use serde_json::{Value, json};

/// The kind of a planted cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedKind {
    /// A version makes a path larger.
    Change,
    /// From a version on, a path grows until its process restarts.
    Leak,
    /// A path grows all the time, across restarts.
    Growth,
    /// A process holds much more of a path than its peers.
    Outlier,
    /// A process stops reporting.
    Silence,
}

impl PlantedKind {
    fn name(self) -> &'static str {
        match self {
            Self::Change => "change",
            Self::Leak => "leak",
            Self::Growth => "growth",
            Self::Outlier => "outlier",
            Self::Silence => "silence",
        }
    }
}

/// A planted cause.
#[derive(Clone, Debug, PartialEq)]
pub struct PlantedCause {
    /// Its kind.
    pub kind: PlantedKind,
    /// The service.
    pub service: String,
    /// The path; empty for a silence.
    pub path: String,
    /// The first version with the cause; empty if the cause does not depend on a version.
    pub version: String,
    /// Whether the first version of the tables already has the cause.
    pub is_old: bool,
    /// The host of an outlier or a silence; else empty.
    pub host: String,
}

/// All planted causes.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulationTruth {
    /// The causes.
    pub causes: Vec<PlantedCause>,
}

impl SimulationTruth {
    pub(super) fn to_json(&self) -> String {
        let causes: Vec<Value> = self
            .causes
            .iter()
            .map(|cause| {
                json!({
                    "kind": cause.kind.name(), "service": cause.service, "path": cause.path,
                    "version": cause.version, "host": cause.host,
                })
            })
            .collect();
        let lines: Vec<String> = causes.iter().map(Value::to_string).collect();
        format!("[\n{}\n]\n", lines.join(",\n"))
    }
}
