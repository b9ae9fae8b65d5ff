//! Tables and rows for tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::{Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use memory_fleet::{
    Answer, FleetError, FleetSession, Question, QuestionOptions, RunFacts, SessionOptions, import,
};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

pub(crate) fn open(root: &Path) -> FleetSession {
    let mut options = SessionOptions::default();
    options.threads = 2;
    FleetSession::open(root, &options).unwrap()
}

pub(crate) fn all_rows() -> QuestionOptions {
    let mut options = QuestionOptions::default();
    options.limit = 0;
    options
}

pub(crate) fn ask(root: &Path, question: &Question) -> Answer {
    block_on(open(root).ask(question, &all_rows())).unwrap()
}

/// The rows of a query as texts.
pub(crate) fn query(root: &Path, sql: &str) -> Result<Vec<Vec<String>>, FleetError> {
    let answer = block_on(open(root).ask_sql(sql, 0))?;
    let names: Vec<String> = answer.rows.schema().fields().iter().map(|field| field.name().clone()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Ok(texts(&answer.rows, &names))
}

/// The values of some columns, row by row.
pub(crate) fn texts(rows: &RecordBatch, columns: &[&str]) -> Vec<Vec<String>> {
    let options = FormatOptions::default();
    let columns: Vec<_> = columns
        .iter()
        .map(|name| ArrayFormatter::try_new(rows.column_by_name(name).unwrap(), &options).unwrap())
        .collect();
    (0..rows.num_rows())
        .map(|row| columns.iter().map(|column| column.value(row).to_string()).collect())
        .collect()
}

/// The values of some columns as a set.
pub(crate) fn set<const N: usize>(answer: &Answer, columns: [&str; N]) -> BTreeSet<[String; N]> {
    texts(&answer.rows, &columns).into_iter().map(|row| row.try_into().unwrap()).collect()
}

/// All files below a folder.
pub(crate) fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { open.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// A report file with some amounts in bytes.
pub(crate) fn report(process: &str, amounts: &[(&str, i64)]) -> String {
    let rows: Vec<String> = amounts
        .iter()
        .map(|(path, amount)| {
            let kind = if path.starts_with("explicit/") { 1 } else { 2 };
            format!(
                r#"{{"process":"{process}","path":"{path}","kind":{kind},"units":0,"amount":{amount},"description":""}}"#
            )
        })
        .collect();
    format!(r#"{{"version":1,"hasMozMallocUsableSize":true,"reports":[{}]}}"#, rows.join(","))
}

/// Adds a report of a process at a time in seconds.
pub(crate) fn add_run(root: &Path, (service, host, version): (&str, &str, &str), time: u64, body: &str) {
    let source = root.join("source.json");
    fs::write(&source, body).unwrap();
    let mut facts = RunFacts::default();
    facts.service = Some(service.to_owned());
    facts.host = Some(host.to_owned());
    facts.version = Some(version.to_owned());
    facts.time = Some(Duration::from_secs(time));
    import(root, std::slice::from_ref(&source), &facts).unwrap();
    fs::remove_file(source).unwrap();
}

/// Writes a file of a table again without its metadata, and with one more column if it has a name.
pub(crate) fn write_again(path: &Path, new_column: Option<&str>) {
    let reader = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(path).unwrap()).unwrap();
    let batch = reader.build().unwrap().next().unwrap().unwrap();
    let schema = batch.schema();
    let (mut fields, mut columns) = (schema.fields().to_vec(), batch.columns().to_vec());
    if let Some(name) = new_column {
        fields.push(Arc::new(Field::new(name, DataType::Int64, false)));
        columns.push(Arc::new(Int64Array::from(vec![1; batch.num_rows()])));
    }
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
    let mut writer = ArrowWriter::try_new(fs::File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// A message of protobuf: numbers and parts by field.
#[derive(Default)]
pub(crate) struct Message(pub(crate) Vec<u8>);

impl Message {
    pub(crate) fn number(mut self, field: u8, number: u64) -> Self {
        self.0.push(field << 3);
        let mut rest = number;
        while rest >= 0x80 {
            self.0.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.0.push(rest as u8);
        self
    }

    pub(crate) fn part(mut self, field: u8, part: impl AsRef<[u8]>) -> Self {
        let part = part.as_ref();
        self.0.extend([field << 3 | 2, u8::try_from(part.len()).unwrap()]);
        self.0.extend(part);
        self
    }
}
