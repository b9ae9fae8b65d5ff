//! The last report of a process, in a page of `about-memory serve` that runs in this program.

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
pub(super) const MAX_REPORTS: usize = 50;
/// The maximum number of rows of a report.
const MAX_REPORT_ROWS: usize = 200_000;

/// The server of the opened reports. It starts with the first report.
#[derive(Debug, Default)]
pub(super) struct OpenReports(Mutex<(Option<Server>, usize)>);

impl OpenReports {
    /// Adds a report. Returns the address of its view, with the token of that server.
    pub(super) fn add(&self, title: &str, set: ReportSet) -> Result<String, FleetError> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.1 >= MAX_REPORTS {
            return Err(FleetError::Usage(format!(
                "{MAX_REPORTS} reports are open; start memory-fleet serve again"
            )));
        }
        if open.0.is_none() {
            let server =
                Server::start(Session::new(SessionOptions::new()), &ServeOptions::new().read_only(true));
            open.0 = Some(server.map_err(FleetError::Output)?);
        }
        open.1 += 1;
        let server = open.0.as_ref().expect("the server was started above");
        Ok(server.open_report(title, set))
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
    // Reports of processes without a host have null there.
    let condition = match process.host.is_empty() {
        true => condition.replacen("host = ''", "coalesce(host, '') = ''", 1),
        false => condition,
    };
    let condition = match process.pid {
        Some(0) => condition.replacen("pid = 0", "coalesce(pid, 0) = 0", 1),
        _ => condition,
    };
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
