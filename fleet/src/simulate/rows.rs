//! The rows of a service and a day, as a file of the table `reports`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::{
    Array, ArrayRef, DictionaryArray, FixedSizeBinaryArray, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray, UInt8Array, UInt32Array, new_null_array,
};
use datafusion::arrow::datatypes::{Int32Type, Schema};
use datafusion::error::DataFusionError;
use memory_export::parquet::folder_name;

use super::plan::{PlannedLife, PlannedService};
use super::random::bits;
use super::{SimulationOptions, amounts};
use crate::day::DAY_SECONDS;
use crate::error::FleetError;
use crate::session::report_schema;
use crate::table_writer::{FileFacts, TableFileWriter, with_dictionaries};

/// A report of a process.
struct SimulatedRun<'p> {
    /// Seconds since the first day.
    second: i64,
    process: usize,
    life: &'p PlannedLife,
}

/// Writes a file, and returns the number of its rows.
pub(super) fn write(
    root: &Path,
    options: &SimulationOptions,
    service: &PlannedService,
    day: u32,
) -> Result<u64, FleetError> {
    let runs = runs(options, service, day);
    if runs.is_empty() {
        return Ok(0);
    }
    let start = options.first.start();
    let micros = |second: i64| (start.as_secs().cast_signed() + second) * 1_000_000;
    let ids: Vec<[u8; 16]> = runs
        .iter()
        .map(|run| {
            let half = |part: u64| {
                let keys = [11, part, service.index, run.process as u64, run.second.cast_unsigned()];
                bits(options.seed, &keys).to_be_bytes()
            };
            let mut id = [0; 16];
            id[..8].copy_from_slice(&half(0));
            id[8..].copy_from_slice(&half(1));
            id
        })
        .collect();
    let hex = |id: &[u8; 16]| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let all_ids: Vec<String> = ids.iter().map(hex).collect();

    let count = runs.len();
    let host_keys = runs.iter().map(|run| run.process as i32);
    let version_keys = runs.iter().map(|run| run.life.version as i32);
    let hosts: ArrayRef =
        Arc::new(StringArray::from_iter_values(service.processes.iter().map(|process| &process.host)));
    let versions: ArrayRef = Arc::new(StringArray::from_iter_values(&service.versions));
    let times = runs.iter().map(|run| micros(run.second));
    let common = CommonColumns {
        schema: Arc::new(with_dictionaries(&report_schema())),
        ts: Arc::new(TimestampMicrosecondArray::from_iter_values(times).with_timezone("UTC")),
        run_id: Arc::new(FixedSizeBinaryArray::try_from_iter(ids.iter()).map_err(DataFusionError::from)?),
        host: dictionary(Int32Array::from_iter_values(host_keys), &hosts)?,
        version: dictionary(Int32Array::from_iter_values(version_keys), &versions)?,
        pid: Arc::new(UInt32Array::from_iter_values(runs.iter().map(|run| run.life.pid))),
        started: Arc::new(
            TimestampMicrosecondArray::from_iter_values(runs.iter().map(|run| micros(run.life.start)))
                .with_timezone("UTC"),
        ),
        service: service.name,
        count,
    };
    let time = start + Duration::from_secs(u64::from(day) * DAY_SECONDS);
    let name = format!("{}-{day:05}", service.name);
    let path = root.join(folder_name("reports", time, service.name)).join(format!("{name}.parquet"));
    let facts = FileFacts { runs: &all_ids.join(" "), inputs: "" };
    let mut file = TableFileWriter::create(&path, "reports", &common.schema, facts)?;
    let mut totals = vec![0_i64; count];
    let mut amounts = vec![0_i64; count];
    for (index, path) in service.paths.iter().enumerate() {
        let of_process: Vec<f64> = (0..service.processes.len() as u64)
            .map(|process| amounts::of_process(options.seed, service.index, index as u64, process))
            .collect();
        let (mut at, mut of_time) = (i64::MIN, 1.0);
        for (position, run) in runs.iter().enumerate() {
            if run.second != at {
                (at, of_time) = (run.second, amounts::of_time(path, run.second));
            }
            let keys = [12, service.index, index as u64, run.process as u64, run.second.cast_unsigned()];
            let factor = of_process[run.process] * of_time;
            let mut bytes = amounts::bytes(path, factor, run.life, run.second, bits(options.seed, &keys));
            if let Some((_, more)) = service.processes[run.process].more.filter(|(path, _)| *path == index) {
                bytes += more;
            }
            amounts[position] = bytes as i64;
            totals[position] += amounts[position];
        }
        file.write(&common.batch(&path.path, "heap", &amounts)?)?;
    }
    file.write(&common.batch("heap-allocated", "other", &totals)?)?;
    let resident: Vec<i64> = totals.iter().map(|total| total + total / 5 + 20_000_000).collect();
    file.write(&common.batch("resident", "other", &resident)?)?;
    file.finish()
}

/// The reports of a day, by time and process.
fn runs<'p>(options: &SimulationOptions, service: &'p PlannedService, day: u32) -> Vec<SimulatedRun<'p>> {
    let step = i64::from(options.minutes) * 60;
    let length = DAY_SECONDS.cast_signed();
    let (start, end) = (i64::from(day) * length, (i64::from(day) + 1) * length);
    let mut runs = Vec::new();
    for time in (start..end).step_by(step as usize) {
        for (index, process) in service.processes.iter().enumerate() {
            // Collectors do not ask all processes in the same second.
            let second = time
                + (bits(options.seed, &[13, service.index, index as u64]) % step.min(30).cast_unsigned())
                    as i64;
            let life = process.lives.iter().rev().find(|life| life.start <= second);
            if let Some(life) = life.filter(|_| second < process.silent_from) {
                runs.push(SimulatedRun { second, process: index, life });
            }
        }
    }
    runs.sort_by_key(|run| (run.second, run.process));
    runs
}

/// The columns that are the same for each path.
struct CommonColumns {
    schema: Arc<Schema>,
    ts: ArrayRef,
    run_id: ArrayRef,
    host: ArrayRef,
    version: ArrayRef,
    pid: ArrayRef,
    started: ArrayRef,
    service: &'static str,
    count: usize,
}

impl CommonColumns {
    fn batch(&self, path: &str, kind: &str, amounts: &[i64]) -> Result<RecordBatch, FleetError> {
        let same = |text: &str| {
            let texts: ArrayRef = Arc::new(StringArray::from_iter_values([text]));
            dictionary(Int32Array::from_value(0, self.count), &texts)
        };
        let name = path.rsplit('/').next().unwrap_or_default();
        let depth = path.split('/').count() as u8;
        let columns = self.schema.fields().iter().map(|field| {
            Ok(match field.name().as_str() {
                "ts" => Arc::clone(&self.ts),
                "run_id" => Arc::clone(&self.run_id),
                "host" => Arc::clone(&self.host),
                "service" | "process" => same(self.service)?,
                "version" => Arc::clone(&self.version),
                "pid" => Arc::clone(&self.pid),
                "started" => Arc::clone(&self.started),
                "path" => same(path)?,
                "name" => same(name)?,
                "depth" => Arc::new(UInt8Array::from_value(depth, self.count)),
                "kind" => same(kind)?,
                "units" => same("bytes")?,
                "amount" => Arc::new(Int64Array::from(amounts.to_vec())),
                "description" => same("Simulated memory.")?,
                _ => new_null_array(field.data_type(), self.count),
            })
        });
        let columns = columns.collect::<Result<Vec<ArrayRef>, FleetError>>()?;
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(DataFusionError::from)?)
    }
}

fn dictionary(keys: Int32Array, values: &ArrayRef) -> Result<ArrayRef, FleetError> {
    let texts = DictionaryArray::<Int32Type>::try_new(keys, Arc::clone(values));
    let texts: &dyn Array = &texts.map_err(DataFusionError::from)?;
    Ok(texts.slice(0, texts.len()))
}
