//! Opened files and processes. A source has a kind, totals, and tables by several keys.

use std::path::PathBuf;

use about_memory::session::Session;
use about_memory::temporary::TemporaryFolder;
use dmd_analyze::recording::Moment;

use super::super::dump_limits::DumpLimits;
use super::super::file_kind::FileKind;
use super::control::CallControl;
use super::graph_source::GraphSource;
use super::report_source::ReportSource;
use super::stack_source::StackSource;
use super::table::{AmountTable, RowSums};

/// The data of a source.
pub(super) enum SourceData {
    Reports(ReportSource),
    Stacks(StackSource),
    Graph(GraphSource),
}

/// A source that a handle names.
pub(super) struct OpenedSource {
    pub(super) handle: String,
    /// The name of the file or process, for messages.
    pub(super) name: String,
    pub(super) kind: &'static str,
    pub(super) data: SourceData,
    /// Facts that limit all answers, such as a missing part of the file.
    pub(super) notes: Vec<String>,
    /// The files of a capture. They are removed with the source.
    pub(super) _files: Option<TemporaryFolder>,
}

/// A file to open, and how to read it.
pub(super) struct FileRequest<'a> {
    pub(super) path: PathBuf,
    /// The time of a dump or a recording.
    pub(super) at: Option<Moment>,
    /// Whether to read the types of a dump instead of its stacks.
    pub(super) as_types: bool,
    pub(super) limits: &'a DumpLimits,
}

impl SourceData {
    /// Opens a file of any kind that `show` reads.
    pub(super) fn open(
        request: &FileRequest<'_>,
        session: &Session,
        control: &CallControl,
    ) -> Result<(&'static str, Self), String> {
        let path = &request.path;
        let kind = FileKind::detect(path).filter(|kind| FileKind::SHOWN.contains(kind));
        let Some(kind) = kind else {
            // Readers of files explain an incomplete or foreign file better than its first bytes do.
            return match ReportSource::open(path, request.limits) {
                Ok(source) => Ok((FileKind::Report.name(), Self::Reports(source))),
                Err(reason) => Err(reason),
            };
        };
        control.say(format!("reading {}", kind.name()));
        if request.at.is_some() && !matches!(kind, FileKind::Dump | FileKind::Recording) {
            return Err(format!("`at` is for dumps and recordings, and the file is {}", kind.name()));
        }
        let data = match kind {
            FileKind::Report => Self::Reports(ReportSource::open(path, request.limits)?),
            FileKind::Snapshot => Self::Graph(GraphSource::open(session, path, control)?),
            FileKind::Core => Self::Graph(GraphSource::typed_file(session, path, request.limits, control)?),
            FileKind::Dump if request.as_types => {
                Self::Graph(GraphSource::typed_file(session, path, request.limits, control)?)
            }
            FileKind::Pprof => Self::Stacks(StackSource::open_pprof(path, request.limits)?),
            _ => Self::Stacks(StackSource::open(path, request.at, request.limits)?),
        };
        Ok((kind.name(), data))
    }

    /// The keys by which the source has tables. The first key is the default.
    pub(super) fn groups(&self) -> Vec<String> {
        match self {
            Self::Reports(_) => ReportSource::GROUPS.iter().map(|group| (*group).to_owned()).collect(),
            Self::Stacks(stacks) => stacks.groups().iter().map(|group| (*group).to_owned()).collect(),
            Self::Graph(graph) => graph.groups(),
        }
    }

    /// The keys of the tables that a summary shows.
    pub(super) fn summary_groups(&self) -> Vec<String> {
        let shown: &[&str] = match self {
            Self::Reports(_) => &["path", "process", "other"],
            Self::Stacks(_) => &["site", "type", "crate", "function", "stack"],
            Self::Graph(_) => &["suspect", "type", "field", "waste"],
        };
        let mut groups = self.groups();
        groups.retain(|group| shown.contains(&group.as_str()));
        groups.sort_by_key(|group| shown.iter().position(|known| known == group));
        groups.truncate(3);
        groups
    }

    pub(super) fn total(&self) -> RowSums {
        match self {
            Self::Reports(reports) => reports.total(),
            Self::Stacks(stacks) => stacks.total(),
            Self::Graph(graph) => graph.total(),
        }
    }

    /// The meaning of the total's bytes and count.
    pub(super) fn units(&self) -> [&'static str; 2] {
        match self {
            Self::Reports(_) => ["bytes of `explicit`", "reports"],
            Self::Stacks(stacks) => stacks.units(),
            Self::Graph(graph) => graph.units(),
        }
    }

    pub(super) fn table(&self, group: &str, control: &CallControl) -> Result<AmountTable, String> {
        if !self.groups().iter().any(|known| known == group) {
            return Err(format!("there is no group {group}; the groups are: {}", self.groups().join(", ")));
        }
        match self {
            Self::Reports(reports) => Ok(reports.table(group)),
            Self::Stacks(stacks) => stacks.table(group),
            Self::Graph(graph) => graph.table(group, control),
        }
    }
}
