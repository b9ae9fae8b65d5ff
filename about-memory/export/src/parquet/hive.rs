//! The paths of files: folders with the date and the service, as in Hive.

use std::time::Duration;

use super::run::ParquetRun;

/// The path of a run's file for a table, relative to the folder of all tables. For example:
/// `reports/date=2026-11-22/service_folder=search/0123456789abcdef0123456789abcdef.parquet`.
pub fn file_name(table: &str, run: &ParquetRun) -> String {
    format!("{}/{}.parquet", folder_name(table, run.time, &run.service), run.id_text())
}

/// The folder of a table's rows for a day and a service, relative to the folder of all tables. For example:
/// `reports/date=2026-11-22/service_folder=search`.
///
/// In the service, all characters except ASCII letters, digits and `-._` are percent-encoded, and so are the dots of
/// the names `.` and `..`. Readers decode them. An empty service is `__HIVE_DEFAULT_PARTITION__`, which readers read as
/// null. A long name is cut to the characters in its first 78 bytes. The files have the whole name in their column
/// `service`.
pub fn folder_name(table: &str, time: Duration, service: &str) -> String {
    let mut folder = String::new();
    let only_dots = service.bytes().all(|byte| byte == b'.');
    for byte in start(service).bytes() {
        match byte {
            b'.' if only_dots => folder += "%2E",
            b'-' | b'.' | b'_' => folder.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => folder.push(char::from(byte)),
            _ => folder += &format!("%{byte:02X}"),
        }
    }
    if folder.is_empty() {
        folder += "__HIVE_DEFAULT_PARTITION__";
    }
    format!("{table}/date={}/service_folder={folder}", date(time))
}

/// The characters in the first 78 bytes. A byte takes up to three characters in a folder's name, and file names have at
/// most 255 bytes.
fn start(name: &str) -> &str {
    let end = (0..=name.len().min(78)).rev().find(|end| name.is_char_boundary(*end));
    &name[..end.unwrap_or_default()]
}

/// The date in UTC of a time since 1970, such as `2026-11-22`.
///
/// Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
pub fn date(time: Duration) -> String {
    let days = time.as_secs() / 86_400 + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}
