//! Chrome's trace events as JSON: counters over time, for ui.perfetto.dev.
//!
//! Each path is a counter (`ph` is `C`) of its process. Times are microseconds. Source: "Trace Event Format".

use std::io::Write;

use crate::error::ExportError;
use crate::json::{JsonWriter, MOST};

const FORMAT: &str = "Chrome's trace events";

/// Amounts over time.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// The times of the points, in microseconds, ascending.
    pub times: Vec<u64>,
    /// The counters.
    pub counters: Vec<Counter>,
}

/// The amounts of one path in one process.
#[derive(Clone, Debug, Default)]
pub struct Counter {
    /// The process; empty for the sum of all processes.
    pub process: String,
    /// The path.
    pub path: String,
    /// The name of the unit, which the client shows.
    pub unit: String,
    /// The amount at each time; `None` if the report of that time does not have the path.
    pub amounts: Vec<Option<i128>>,
}

/// Writes counters.
///
/// # Errors
///
/// Returns an error if `out` fails, or if an amount exceeds 2^53. The client's numbers are not exact above 2^53.
pub fn write(counters: &Counters, out: impl Write) -> Result<(), ExportError> {
    let mut processes: Vec<&str> = Vec::new();
    for counter in &counters.counters {
        if !processes.contains(&&*counter.process) {
            processes.push(&counter.process);
        }
    }
    let mut json = JsonWriter::new(out);
    json.raw("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
    let mut comma = "";
    for (index, process) in processes.iter().enumerate() {
        json.raw(comma)?;
        json.raw(&format!(
            "\n{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{},\"args\":{{\"name\":",
            index + 1
        ))?;
        json.string(if process.is_empty() { "all processes" } else { process })?;
        json.raw("}}")?;
        comma = ",";
    }
    for counter in &counters.counters {
        let pid =
            processes.iter().position(|process| *process == counter.process).map_or(0, |index| index + 1);
        for (time, amount) in counters.times.iter().zip(&counter.amounts) {
            let Some(amount) = amount else { continue };
            if amount.abs() > MOST {
                return Err(ExportError::TooLarge(FORMAT, "an amount", *amount, MOST));
            }
            json.raw(comma)?;
            json.raw(&format!("\n{{\"ph\":\"C\",\"pid\":{pid},\"tid\":0,\"ts\":{time},\"name\":"))?;
            json.string(&counter.path)?;
            json.raw(",\"args\":{")?;
            json.string(&counter.unit)?;
            json.raw(&format!(":{amount}}}}}"))?;
            comma = ",";
        }
    }
    json.raw("\n]}\n")?;
    json.finish()?;
    Ok(())
}
