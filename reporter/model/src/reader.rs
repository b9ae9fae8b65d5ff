//! JSON from streams that nobody trusts, in bounded memory.
//!
//! A [`Source`] gives the bytes of a stream, decompressed if they start as gzip does (feature `gzip`). A [`Window`] holds a part of
//! its text, and a [`Scan`] takes tokens from the front of that part. A token that ends at the window's edge asks
//! for more text ([`Stop::More`]); the window then at least doubles and the token is scanned again. [`Skip`] passes
//! over a value of any size without keeping it.
//!
//! The limits: text of at most the bytes given to [`Window::new`], single values of at most 64 MiB, and nesting
//! of at most 128 levels. Each is a [`ReadError`](crate::ReadError) when it is exceeded.
//!
//! ```
//! use memory_report::reader::{Source, Window};
//!
//! let mut window = Window::new(Source::open(&b"{\"version\": 1}"[..])?, 1 << 20);
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

pub use scan::{Scan, Skip, Stop};
pub use source::Source;
pub use window::Window;

/// The first bytes of what gzip compressed.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
