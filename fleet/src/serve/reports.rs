//! The last report of a process, in a page of `about-memory serve` that runs in this program.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use about_memory::serve::{ServeOptions, Server};
use about_memory::session::{Session, SessionOptions};
use memory_report::{Kind, Report, ReportSet, Units};

use super::api::ProcessName;
use super::series::named;
use crate::batch_columns::BatchColumns;
use crate::day::Day;
use crate::error::FleetError;
use crate::questions::{QuestionOptions, quoted};
use crate::session::FleetSession;

/// The maximum number of reports that are open at the same time.
pub(super) const MAX_REPORTS: NonZeroUsize = NonZeroUsize::new(50).expect("50 is not 0");
/// The maximum number of rows of a report.
const MAX_REPORT_ROWS: usize = 200_000;

/// The server of the opened reports. It starts with the first report.
#[derive(Debug)]
pub(super) struct OpenReports {
    port: u16,
    server: Mutex<ReportServer>,
}

#[derive(Debug, Default)]
struct ReportServer {
    server: Option<Server>,
    /// The reports that the server keeps, in the order in which it forgets them, with their addresses.
    open: VecDeque<(String, String)>,
}

impl OpenReports {
    /// `port` is the port of the server; 0 stands for a free one.
    pub(super) fn new(port: u16) -> Self {
        Self { port, server: Mutex::default() }
    }

    /// Adds a report, in place of the oldest if there are too many. Returns the address of its view, with the token of
    /// that server.
    pub(super) fn add(&self, scope: &str, title: &str, set: ReportSet) -> Result<String, FleetError> {
        let mut reports = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        let ReportServer { server, open } = &mut *reports;
        let key = format!("{scope}\n{title}");
        if let Some((_, url)) = open.iter().find(|(known, _)| *known == key) {
            return Ok(url.clone());
        }
        let server = match server {
            Some(server) => server,
            None => {
                let options = ServeOptions::new().read_only(true).keep(MAX_REPORTS).port(self.port);
                let started = Server::start(Session::new(SessionOptions::new()), &options);
                server.insert(started.map_err(FleetError::Output)?)
            }
        };
        let url = server.open_report(title, set);
        open.push_back((key, url.clone()));
        if open.len() > MAX_REPORTS.get() {
            open.pop_front();
        }
        Ok(url)
    }
}

/// The last report of a process, with a title.
pub(super) async fn last_report(
    session: &FleetSession,
    options: &QuestionOptions,
    process: &ProcessName,
) -> Result<(String, ReportSet), FleetError> {
    let condition = named(options, process);
    let sql = format!(
        "SELECT max(last_ts) AS shown, CAST(max(last_ts) AS BIGINT) AS seen FROM buckets WHERE {condition} HAVING count(*) > 0"
    );
    let mut last = None;
    for batch in session.query(&sql).await? {
        if batch.num_rows() > 0 {
            let batch = BatchColumns(&batch);
            last = Some((batch.texts("shown")?.value(0).to_owned(), batch.whole("seen")?.value(0)));
        }
    }
    let Some((shown, seen)) = last else {
        return Err(FleetError::Usage("this process has no report in these days".to_owned()));
    };
    let day = Day::at(std::time::Duration::from_micros(u64::try_from(seen).unwrap_or_default()));
    let sql = format!(
        "SELECT path, kind, units, amount, description, coalesce(pid, 0) AS pid FROM reports
        WHERE date BETWEEN DATE {} AND DATE {} AND CAST(ts AS BIGINT) = {seen} AND {condition} LIMIT {MAX_REPORT_ROWS}",
        quoted(&day.plus(-1).to_string()),
        quoted(&day.plus(1).to_string()),
    );
    let mut set = ReportSet::new();
    set.set_usable_size_known(true);
    let mut name = process.process.clone();
    for batch in session.query(&sql).await? {
        let rows = batch.num_rows();
        let batch = BatchColumns(&batch);
        let [paths, kinds, units, descriptions] =
            ["path", "kind", "units", "description"].map(|name| batch.texts(name));
        let (paths, kinds, units, descriptions) = (paths?, kinds?, units?, descriptions?);
        let (amounts, pids) = (batch.whole("amount")?, batch.whole("pid")?);
        for row in 0..rows {
            // The view computes this amount.
            if paths.value(row) == "explicit/heap-unclassified" {
                continue;
            }
            if pids.value(row) != 0 {
                name = format!("{} (pid {})", process.process, pids.value(row));
            }
            set.push(Report {
                process: &name,
                path: paths.value(row),
                kind: kind(kinds.value(row)),
                units: unit(units.value(row)),
                amount: amounts.value(row),
                description: descriptions.value(row),
            });
        }
    }
    if set.is_empty() {
        return Err(FleetError::Usage("this process has no report in these days".to_owned()));
    }
    Ok((format!("{name} on {} at {shown}", process.host), set))
}

fn kind(name: &str) -> Kind {
    match name {
        "heap" => Kind::Heap,
        "nonheap" => Kind::NonHeap,
        _ => Kind::Other,
    }
}

fn unit(name: &str) -> Units {
    match name {
        "count" => Units::Count,
        "count-cumulative" => Units::CountCumulative,
        "percentage" => Units::Percentage,
        _ => Units::Bytes,
    }
}
