//! The answers of the tools that do more than list a table.

use about_memory::temporary::TemporaryFolder;
use dmd_analyze::program::bytes;
use dmd_analyze::recording::Moment;
use serde_json::{Value, json};

use super::super::input::InputArgument;
use super::super::live_input;
use super::argument::CheckedArguments;
use super::control::CallControl;
use super::opened::{MemoryTools, max_bytes};
use super::page::{self, PageStart, SCHEMA, ToolAnswer, cut, number, quoted};
use super::place::process;
use super::reason::reason;
use super::report_source::ReportSource;
use super::source::{FileRequest, OpenedSource, SourceData};
use super::table::RowChoice;

/// A summary has at most this many rows of each table.
const SUMMARY_ROWS: usize = 8;

type AnswerResult = Result<ToolAnswer, String>;

/// Opens a file or the reports of a process.
pub(super) fn open(
    tools: &MemoryTools,
    arguments: &CheckedArguments<'_>,
    control: &CallControl,
) -> AnswerResult {
    tools.check_room()?;
    let at = arguments.text("at").map(|at| {
        at.parse::<Moment>()
            .map_err(|error| format!("`at` must be peak, end or a time such as 12.5s: {error}"))
    });
    let at = at.transpose()?;
    match (arguments.text("path"), arguments.text("process")) {
        (Some(path), None) => {
            let request = FileRequest {
                path: tools.places.file(path)?,
                at,
                as_types: arguments.flag("types"),
                limits: &tools.limits,
            };
            let (kind, data) = SourceData::open(&request, &tools.session, control)?;
            opened(tools, path, kind, data, None)
        }
        (None, Some(name)) => {
            let input = InputArgument::from(std::ffi::OsString::from(name));
            let (pid, _) = process(&input)?;
            let set = live_input::read(pid, memory_report::file::ReadOptions::new());
            let set = set.map_err(|failure| reason(name.as_ref(), failure))?;
            let data = SourceData::Reports(ReportSource::new(set));
            opened(tools, name, "the reports of a process", data, None)
        }
        _ => Err("name either `path` or `process`".to_owned()),
    }
}

/// Keeps a source with its temporary files, and returns its facts.
pub(super) fn opened(
    tools: &MemoryTools,
    name: &str,
    kind: &'static str,
    data: SourceData,
    files: Option<TemporaryFolder>,
) -> AnswerResult {
    let notes = match &data {
        SourceData::Reports(reports) => reports.notes(),
        SourceData::Stacks(stacks) => stacks.notes(),
        SourceData::Graph(graph) => graph.notes(),
    };
    let name_there = name.to_owned();
    let source =
        tools.keep(|handle| OpenedSource { handle, name: name_there, kind, data, notes, _files: files })?;
    let (total, [unit, counts]) = (source.data.total(), source.data.units());
    let groups = source.data.groups();
    let notes = page::notes(&source.notes);
    let text = format!(
        "Opened {} as {}: it is {kind} with {} ({unit}) in {} {counts}.\nGroups: {}.\n{}Next: summary.\n",
        quoted(name, 200),
        source.handle,
        bytes(total.bytes),
        total.count,
        groups.join(", "),
        page::notes_text(&notes)
    );
    let structured = json!({
        "schema": SCHEMA,
        "handle": source.handle,
        "name": cut(name, 200),
        "kind": kind,
        "total": { "bytes": number(total.bytes), "count": number(total.count) },
        "bytesAre": unit,
        "countsAre": counts,
        "groups": groups,
        "notes": notes,
    });
    Ok(ToolAnswer { structured, text })
}

/// The largest rows by the most useful keys.
pub(super) fn summary(
    tools: &MemoryTools,
    arguments: &CheckedArguments<'_>,
    control: &CallControl,
) -> AnswerResult {
    let source = tools.find(arguments.required("handle"))?;
    let mut groups = source.data.summary_groups();
    let mut notes = source.notes.clone();
    if let SourceData::Graph(graph) = &source.data
        && !graph.has_suspects_soon()
    {
        groups.retain(|group| group != "suspect");
        notes.push("The suspects are still computed: call `top` by suspect.".to_owned());
    }
    let mut parts = Vec::new();
    for group in &groups {
        let table = tools.table(&source, group, control)?;
        let key = format!("{}/{group}", source.handle);
        let choice = RowChoice::default();
        // The cursor continues the list in `top`.
        let start = PageStart::new(&(&*key, &choice), None)?;
        parts.push((tools.cache.view(&key, &table, &choice), start));
    }
    let (total, [unit, counts]) = (source.data.total(), source.data.units());
    let notes = page::notes(&notes);
    Ok(page::fit(SUMMARY_ROWS * parts.len(), max_bytes(arguments), |count| {
        let mut tables = Vec::new();
        let mut text = format!(
            "{} ({unit}) in {} {counts}: {} {}.\n",
            bytes(total.bytes),
            total.count,
            source.kind,
            quoted(&source.name, 200)
        );
        for (place, (view, start)) in parts.iter().enumerate() {
            // The first tables get the rows that cannot be shared equally.
            let rows = count / parts.len() + usize::from(place < count % parts.len());
            let (object, table) = page::part(view, start, rows);
            tables.push(Value::Object(object));
            text += &table;
        }
        text += &page::notes_text(&notes);
        let structured = json!({
            "schema": SCHEMA,
            "handle": source.handle,
            "name": cut(&source.name, 200),
            "kind": source.kind,
            "total": { "bytes": number(total.bytes), "count": number(total.count) },
            "bytesAre": unit,
            "countsAre": counts,
            "tables": tables,
            "notes": notes,
        });
        ToolAnswer { structured, text }
    }))
}

pub(super) fn close(tools: &MemoryTools, arguments: &CheckedArguments<'_>, _: &CallControl) -> AnswerResult {
    let handle = arguments.required("handle");
    let open = tools.close(handle)?;
    let structured = json!({ "schema": SCHEMA, "handle": handle, "notes": [], "open": open });
    Ok(ToolAnswer { structured, text: format!("Closed {handle}. {open} sources are open.\n") })
}
