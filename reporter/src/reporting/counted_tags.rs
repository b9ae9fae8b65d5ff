//! Tags whose allocations, live bytes and peak are counted while the program runs.

use crate::allocator;
use crate::allocator::tags::NO_TAG;
use crate::allocator::tags::tallies::{self, TagRecord};

use super::contexts;
use super::heap_figures::{HeapFigures, ScopeError};
use super::path_tags::Tag;
use super::tag_names;

/// A tag that counts: its allocations, frees, live bytes and peak are known at any time, without a collection.
///
/// A path contains the paths below it: `explicit/query` counts what `explicit/query/17` allocates. The figures have the
/// blocks that were allocated after the first call for this path. A thread that is under the tag at this call counts
/// from its next guard on. Collections report the peak and the number of allocations: `tag-peaks/..` and
/// `tag-allocations/..`.
///
/// ```standalone_crate
/// use memory_reporter::tags::CountedTag;
///
/// memory_reporter::global_allocator!(std::alloc::System);
///
/// let queries = CountedTag::new("explicit/query")?;
/// let text = memory_reporter::tags::Tag::new("explicit/query/17").run(|| "x".repeat(1000));
/// assert_eq!(queries.figures().retained_bytes, 1000);
/// drop(text);
/// assert_eq!((queries.figures().retained_bytes, queries.figures().peak_bytes), (0, 1000));
/// # Ok::<(), memory_reporter::scopes::ScopeError>(())
/// ```
///
/// In addition to the time of a tag, an allocation with its deallocation takes about 10 ns, and more if several threads
/// are under the tag at the same time.
#[derive(Clone, Copy, Debug)]
pub struct CountedTag {
    tag: Tag,
    record: &'static TagRecord,
}

impl CountedTag {
    /// Makes the tag of this path count.
    ///
    /// # Errors
    ///
    /// Returns an error if no allocator is declared, if the path is [invalid](ScopeError::InvalidPath) for a tag, or if
    /// all numbers of tags are in use.
    pub fn new(path: impl AsRef<str>) -> Result<Self, ScopeError> {
        let path = path.as_ref();
        if allocator::declared().is_none() {
            return Err(ScopeError::NoAllocator);
        }
        if let Some(why) = tag_names::fault(path) {
            return Err(ScopeError::InvalidPath { path: path.to_owned(), why });
        }
        let tag = Tag::new(path);
        let number = if tag.0 == NO_TAG { None } else { contexts::count(tag.0) };
        let record = number.and_then(tallies::record);
        record.map(|record| Self { tag, record }).ok_or_else(|| ScopeError::NoRoom { scope: path.to_owned() })
    }

    /// The tag, to allocate under it.
    pub fn tag(&self) -> Tag {
        self.tag
    }

    /// The figures up to now, of this path and all paths below it. They are exact if no thread allocates or frees memory
    /// of the tag at the same time.
    pub fn figures(&self) -> HeapFigures {
        HeapFigures::from_raw(&self.record.figures())
    }

    pub(super) fn record(&self) -> &'static TagRecord {
        self.record
    }
}
