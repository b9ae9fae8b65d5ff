//! SQLite takes seven functions for the whole process, before its first call.

use core::ffi::{CStr, c_int, c_void};
use core::ptr::{NonNull, null, null_mut};

use libsqlite3_sys as ffi;
use memory_reporter::counters::{CounterSite, CountingMalloc, MemoryCounter};

static COUNTER: MemoryCounter = MemoryCounter::new();
memory_reporter::define_reporter!("explicit/sqlite", Heap, Bytes, COUNTER.bytes(), "Memory used by SQLite.");

struct Sqlite;

impl CounterSite for Sqlite {
    const COUNTER: &'static MemoryCounter = &COUNTER;
}

type Malloc = CountingMalloc<Sqlite>;

unsafe extern "C" fn malloc(bytes: c_int) -> *mut c_void {
    usize::try_from(bytes).map_or(null_mut(), |bytes| Malloc::malloc(bytes))
}

unsafe extern "C" fn realloc(pointer: *mut c_void, bytes: c_int) -> *mut c_void {
    let Ok(bytes) = usize::try_from(bytes) else { return null_mut() };
    // SAFETY: SQLite passes a live block of these functions.
    unsafe { Malloc::realloc(pointer, bytes) }
}

unsafe extern "C" fn size(pointer: *mut c_void) -> c_int {
    // SAFETY: SQLite passes a live block of these functions, or null.
    let bytes = unsafe { Malloc::size(pointer) };
    c_int::try_from(bytes).unwrap_or(c_int::MAX)
}

unsafe extern "C" fn round_up(bytes: c_int) -> c_int {
    bytes.saturating_add(7) & !7
}

unsafe extern "C" fn start(_: *mut c_void) -> c_int {
    ffi::SQLITE_OK
}

unsafe extern "C" fn end(_: *mut c_void) {}

/// Makes SQLite allocate through the counter.
pub fn use_counting_malloc() {
    let functions = ffi::sqlite3_mem_methods {
        xMalloc: Some(malloc),
        xFree: Some(Malloc::free),
        xRealloc: Some(realloc),
        xSize: Some(size),
        xRoundup: Some(round_up),
        xInit: Some(start),
        xShutdown: Some(end),
        pAppData: null_mut(),
    };
    // SAFETY: SQLite has not started. It copies the functions, which behave as its documentation requires.
    let result = unsafe { ffi::sqlite3_config(ffi::SQLITE_CONFIG_MALLOC, &raw const functions) };
    assert_eq!(result, ffi::SQLITE_OK);
}

/// The bytes that SQLite itself counts.
pub fn memory_used() -> i64 {
    // SAFETY: the function has no precondition.
    unsafe { ffi::sqlite3_memory_used() }
}

/// A database in memory.
pub struct Database(NonNull<ffi::sqlite3>);

impl Database {
    pub fn in_memory() -> Self {
        let mut database = null_mut();
        // SAFETY: the name is a C string, and `database` has room for the result.
        let result = unsafe { ffi::sqlite3_open(c":memory:".as_ptr(), &raw mut database) };
        assert_eq!(result, ffi::SQLITE_OK);
        Self(NonNull::new(database).expect("an open database"))
    }

    pub fn execute(&self, sql: &CStr) {
        // SAFETY: the database is open, and the text is a C string.
        let result = unsafe {
            ffi::sqlite3_exec(self.0.as_ptr(), sql.as_ptr(), None, null::<c_void>().cast_mut(), null_mut())
        };
        assert_eq!(result, ffi::SQLITE_OK);
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // SAFETY: the database is open, and no code uses it after the call.
        unsafe { ffi::sqlite3_close(self.0.as_ptr()) };
    }
}
