//! JSON from untrusted streams, in bounded memory.
//!
//! A [`TextSource`] returns the bytes of a stream, decompressed if they start like gzip data (feature `gzip`). A
//! [`TextWindow`] holds a part of the text, and a [`TextScan`] takes tokens from the front of that part. A token that
//! ends at the window's edge needs more text ([`ScanStop::More`]). The window then grows to at least twice its size,
//! and the scan takes the token again. [`ValueSkip`] skips a value of any size without keeping it.
//!
//! The limits are the size of the text that [`TextWindow::new`] receives, 64 MiB for a single value, and 128 levels
//! of nesting. Beyond a limit, reading fails with a [`ReadError`](crate::ReadError).
//!
//! ```
//! use memory_report::reader::{TextSource, TextWindow};
//!
//! let mut window = TextWindow::new(TextSource::open(&b"{\"version\": 1}"[..])?, 1 << 20);
//! let version = window.take(|scan| {
//!     scan.expect(b'{', "`{`")?;
//!     assert_eq!(scan.string()?, "version");
//!     scan.expect(b':', "`:`")?;
//!     Ok(scan.scalar()?.to_owned())
//! })?;
//! assert_eq!(version, "1");
//! # Ok::<(), memory_report::ReadError>(())
//! ```

#[cfg(feature = "gzip")]
mod gzip;
mod scan;
mod source;
mod window;

pub use scan::{ScanStop, TextScan, ValueSkip};
pub use source::TextSource;
pub use window::TextWindow;

/// The first bytes of gzip data.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
