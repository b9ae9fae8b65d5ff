//! The tools: their names, arguments, schemas, and the sources that they answer from.

use serde_json::{Map, Value, json};

use super::argument::{self, ArgumentKind, CheckedArguments, ToolArgument};
use super::control::CallControl;
use super::opened::MemoryTools;
use super::page::{LEAST_BYTES, MAX_BYTES, MAX_ROWS, ToolAnswer};
use super::place::AllowedPlaces;
use super::source::OpenedSource;
use super::table::RowChoice;
use super::{answers, capture, changes, detail, schema};

const MAX_TEXT: usize = 4096;
const MAX_ID: usize = 4096;

use ArgumentKind::{Choice, Flag, Number, Text};

const HANDLE: ToolArgument =
    ToolArgument::new("handle", Text(32), "The handle that `open` returned, such as h1.").required();
const BEFORE: ToolArgument =
    ToolArgument::new("before", Text(32), "The handle of the earlier source.").required();
const AFTER: ToolArgument =
    ToolArgument::new("after", Text(32), "The handle of the later source.").required();
const BY: ToolArgument =
    ToolArgument::new("by", Text(64), "The key of the rows: one of the `groups` that `open` returned.");
const LIMIT: ToolArgument =
    ToolArgument::new("limit", Number(1, MAX_ROWS), "The most rows of the answer. Default: 20.");
const CURSOR: ToolArgument =
    ToolArgument::new("cursor", Text(64), "The cursor of the last page, to get the next page.");
const BYTES: ToolArgument = ToolArgument::new(
    "max_bytes",
    Number(LEAST_BYTES as u64, MAX_BYTES as u64),
    "The most bytes of the answer. Default: 6144.",
);
const FILTER: ToolArgument =
    ToolArgument::new("filter", Text(MAX_TEXT), "Keep only rows whose names contain this text.");
const SORT: ToolArgument = ToolArgument::new(
    "sort",
    Choice(RowChoice::SORTS),
    "The order of the rows. Default: bytes, the most first.",
);
const REVERSE: ToolArgument =
    ToolArgument::new("reverse", Flag, "Reverse the order: the fewest bytes first.");

/// A function that answers a call of a tool.
type RunTool = fn(&MemoryTools, &CheckedArguments<'_>, &CallControl) -> Result<ToolAnswer, String>;

/// A tool.
struct ToolKind {
    name: &'static str,
    title: &'static str,
    about: &'static str,
    arguments: &'static [ToolArgument],
    output: fn() -> Value,
    run: RunTool,
    /// Whether the tool changes a process.
    writes: bool,
}

const TOOLS: &[ToolKind] = &[
    ToolKind {
        name: "open",
        title: "Open a file or a process",
        about: "Open a memory report, a dump or a recording of DMD, a heap snapshot, a core file or a pprof profile, or \
                the reports of a listening process. Returns a handle for the other tools. A handle lives until `close`, \
                and ends with this server; at most 16 are open.",
        arguments: &[
            ToolArgument::new("path", Text(MAX_TEXT), "The file, below an allowed folder."),
            ToolArgument::new(
                "process",
                Text(256),
                "The id or the name of a listening process, instead of a file.",
            ),
            ToolArgument::new(
                "at",
                Text(32),
                "The time of a dump or a recording: peak, end, or a time such as 12.5s. Leaks are the blocks at the end.",
            ),
            ToolArgument::new(
                "types",
                Flag,
                "Read the types and fields of a dump of scan mode, instead of its stacks.",
            ),
        ],
        output: schema::open_schema,
        run: answers::open,
        writes: false,
    },
    ToolKind {
        name: "summary",
        title: "The largest parts of a source",
        about: "The total, and the largest rows by the most useful keys. Call it first.",
        arguments: &[HANDLE, BYTES],
        output: schema::summary_schema,
        run: answers::summary,
        writes: false,
    },
    ToolKind {
        name: "top",
        title: "The largest rows by one key",
        about: "The largest rows by a key, such as site, type, crate, path, node or suspect.",
        arguments: &[HANDLE, BY, LIMIT, CURSOR, BYTES],
        output: schema::page_schema,
        run: rows,
        writes: false,
    },
    ToolKind {
        name: "explain",
        title: "What grew between two sources",
        about: "The change from one source to a later source of the same kind, by a key, the largest growth first. The \
                sum of all rows is the change of the total.",
        arguments: &[BEFORE, AFTER, BY, FILTER, SORT, REVERSE, LIMIT, CURSOR, BYTES],
        output: schema::page_schema,
        run: explain,
        writes: false,
    },
    ToolKind {
        name: "rows",
        title: "All rows, filtered and sorted",
        about: "The rows of a source by a key: filtered, sorted, and page by page. The sums of all pages equal `total`.",
        arguments: &[HANDLE, BY, FILTER, SORT, REVERSE, LIMIT, CURSOR, BYTES],
        output: schema::page_schema,
        run: rows,
        writes: false,
    },
    ToolKind {
        name: "node",
        title: "One row in detail",
        about: "A row by its id: the calls of a stack, the reports below a path, or a node of a heap graph with the \
                nodes that it keeps alive (or its edges).",
        arguments: &[
            HANDLE,
            ToolArgument::new("id", Text(MAX_ID), "The `id` of a row.").required(),
            ToolArgument::new("edges", Flag, "List the edges of a node of a heap graph."),
            LIMIT,
            CURSOR,
            BYTES,
        ],
        output: schema::page_schema,
        run: detail::node,
        writes: false,
    },
    ToolKind {
        name: "why",
        title: "Why memory is alive",
        about: "In a heap graph: the shortest paths from the root to a node, by its id, or to the largest node with a \
                name. In dumps, recordings and profiles: the stacks that contain a function, a file or a type.",
        arguments: &[
            HANDLE,
            ToolArgument::new("id", Text(MAX_ID), "The `id` of a node."),
            ToolArgument::new("name", Text(MAX_TEXT), "A part of the name of a type, function or file."),
            ToolArgument::new("limit", Number(1, 20), "The most paths or stacks. Default: 5."),
            CURSOR,
            BYTES,
        ],
        output: schema::why_schema,
        run: detail::why,
        writes: false,
    },
    ToolKind {
        name: "census_diff",
        title: "Two heap graphs, counted by group",
        about: "The change of bytes and nodes from one heap graph to a later one, by type, allocation stack or file.",
        arguments: &[
            BEFORE,
            AFTER,
            ToolArgument::new(
                "by",
                Choice(&["type", "stack", "file"]),
                "The key of the rows. Default: type.",
            ),
            FILTER,
            SORT,
            REVERSE,
            LIMIT,
            CURSOR,
            BYTES,
        ],
        output: schema::page_schema,
        run: census_diff,
        writes: false,
    },
    ToolKind {
        name: "source",
        title: "The source lines of a stack",
        about: "The function, file and line of each call of a stack or of a node's allocation stack, by the `id` of a \
                row. Shows the lines of files below an allowed folder.",
        arguments: &[
            HANDLE,
            ToolArgument::new("id", Text(MAX_ID), "The `id` of a stack or a node.").required(),
            ToolArgument::new("limit", Number(1, 100), "The most calls. Default: 12."),
            BYTES,
        ],
        output: schema::source_schema,
        run: detail::source,
        writes: false,
    },
    ToolKind {
        name: "close",
        title: "Close a source",
        about: "Drop a handle and its memory.",
        arguments: &[HANDLE],
        output: schema::close_schema,
        run: answers::close,
        writes: false,
    },
    ToolKind {
        name: "capture",
        title: "Record a process",
        about: "Take a dump of a process that DMD records, track the growth of a process in which DMD waits, or copy a \
                process to read its types. Opens the result, as `open` does.",
        arguments: &[
            ToolArgument::new("process", Text(256), "The id or the name of the process.").required(),
            ToolArgument::new("what", Choice(capture::KINDS), "The capture.").required(),
            ToolArgument::new("seconds", Number(1, 600), "The time of `track`. Default: 10."),
        ],
        output: schema::open_schema,
        run: capture::capture,
        writes: true,
    },
];

/// The tools that the server offers, as the protocol lists them.
pub(super) struct ToolList(Vec<Value>);

impl ToolList {
    pub(super) fn tools(&self) -> &[Value] {
        &self.0
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|tool| tool["name"] == *name)
    }
}

/// The tools that the user's choices allow.
fn offered(places: &AllowedPlaces) -> impl Iterator<Item = &'static ToolKind> + use<> {
    let captures = places.allows_captures();
    TOOLS.iter().filter(move |tool| captures || !tool.writes)
}

/// Returns the tools that the user's choices allow.
pub(super) fn list(places: &AllowedPlaces) -> ToolList {
    let tools = offered(places).map(|tool| {
        json!({
            "name": tool.name,
            "title": tool.title,
            "description": tool.about,
            "inputSchema": argument::schema(tool.arguments),
            "outputSchema": (tool.output)(),
            "annotations": {
                "readOnlyHint": !tool.writes,
                "destructiveHint": false,
                "openWorldHint": false,
            },
        })
    });
    ToolList(tools.collect())
}

/// Answers a call. The error tells the assistant what was wrong, and what to do.
pub(super) fn call(
    tools: &MemoryTools,
    name: &str,
    arguments: &Map<String, Value>,
    control: &CallControl,
) -> Result<ToolAnswer, String> {
    let tool = offered(&tools.places).find(|tool| tool.name == name).ok_or("there is no such tool")?;
    (tool.run)(tools, &CheckedArguments::new(arguments, tool.arguments)?, control)
}

/// The key that a call asks for, or the first key of the source.
fn group(arguments: &CheckedArguments<'_>, source: &OpenedSource) -> String {
    match arguments.text("by") {
        Some(by) => by.to_owned(),
        None => source.data.groups().into_iter().next().unwrap_or_default(),
    }
}

fn rows(
    tools: &MemoryTools,
    arguments: &CheckedArguments<'_>,
    control: &CallControl,
) -> Result<ToolAnswer, String> {
    let source = tools.find(arguments.required("handle"))?;
    let group = group(arguments, &source);
    let table = tools.table(&source, &group, control)?;
    tools.page(&format!("{}/{group}", source.handle), &table, arguments, "")
}

fn explain(
    tools: &MemoryTools,
    arguments: &CheckedArguments<'_>,
    control: &CallControl,
) -> Result<ToolAnswer, String> {
    let before = tools.find(arguments.required("before"))?;
    let after = tools.find(arguments.required("after"))?;
    let group = group(arguments, &before);
    let key = format!("{}-{}/{group}", before.handle, after.handle);
    let table = tools.cache.table(&key, || changes::changes(&before, &after, &group, control))?;
    tools.page(&key, &table, arguments, &changes::totals_text(&before, &after))
}

fn census_diff(
    tools: &MemoryTools,
    arguments: &CheckedArguments<'_>,
    control: &CallControl,
) -> Result<ToolAnswer, String> {
    let before = tools.find(arguments.required("before"))?;
    let after = tools.find(arguments.required("after"))?;
    let group = arguments.text("by").unwrap_or("type");
    let key = format!("{}-{}/census-{group}", before.handle, after.handle);
    let table = tools.cache.table(&key, || changes::census_changes(&before, &after, group, control))?;
    tools.page(&key, &table, arguments, &changes::totals_text(&before, &after))
}
