//! JSON from untrusted streams, in bounded memory.
//!
//! A [`TextSource`] gives the bytes of a stream, decompressed if they start as gzip does (feature `gzip`). A [`TextWindow`] holds a part of
//! its text, and a [`TextScan`] takes tokens from the front of that part. A token that ends at the window's edge asks
//! for more text ([`ScanStop::More`]); the window then at least doubles and the token is scanned again. [`ValueSkip`] passes
//! over a value of any size without keeping it.
//!
//! The limits: text of at most the bytes given to [`TextWindow::new`], single values of at most 64 MiB, and nesting
//! of at most 128 levels. Each is a [`ReadError`](crate::ReadError) when it is exceeded.
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

/// The first bytes of what gzip compressed.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
