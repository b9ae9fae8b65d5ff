//! C libraries that allocate through `CountingMalloc`: each library has a reporter, and DMD records its blocks.
//!
//! The program uses zstd, SQLite and OpenSSL, and checks the amounts that the reporters report. SQLite and OpenSSL must
//! get the allocation functions before they allocate, so `main` passes the functions first.

#![allow(unsafe_code, reason = "calls C")]

mod openssl;
mod sqlite;
mod zstd;

use memory_reporter::collect_reports;

memory_reporter::global_allocator!(std::alloc::System);

/// The bytes that a reporter reports now.
fn reported(path: &str) -> i64 {
    let reports = collect_reports(&Default::default());
    let report = reports.iter().find(|report| report.path == path);
    report.unwrap_or_else(|| panic!("{path}: no report")).amount
}

fn main() {
    sqlite::use_counting_malloc();
    openssl::use_counting_malloc();

    let compressor = zstd::Compressor::new(19);
    let text: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let compressed = compressor.compress(&text);
    assert!(compressed < text.len());
    let zstd = reported("explicit/zstd");
    assert!(zstd as usize >= compressor.size() - size_of::<usize>(), "{zstd} of {}", compressor.size());

    let database = sqlite::Database::in_memory();
    database.execute(c"CREATE TABLE numbers (n INTEGER, text TEXT)");
    database.execute(
        c"WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 100000)
          INSERT INTO numbers SELECT n, 'number ' || n FROM c",
    );
    let sqlite = reported("explicit/sqlite");
    assert!(sqlite >= sqlite::memory_used(), "{sqlite} of {}", sqlite::memory_used());

    let bytes = openssl::Bytes::new(1 << 20);
    let openssl = reported("explicit/openssl");
    assert!(openssl >= 1 << 20, "{openssl}");

    println!("zstd    {zstd:>10} bytes; it states {}", compressor.size());
    println!("sqlite  {sqlite:>10} bytes; it states {}", sqlite::memory_used());
    println!("openssl {openssl:>10} bytes");

    drop((compressor, database, bytes));
    assert_eq!(reported("explicit/zstd"), 0);
    assert!(reported("explicit/sqlite") < sqlite / 2);
    assert!(reported("explicit/openssl") < 1 << 20);
}
