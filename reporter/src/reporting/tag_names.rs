//! The paths of tags, and their numbers.

use memory_report::{Kind, Units};

use crate::allocator::tags::{NO_TAG, TagNumber};

use super::conventions::{is_explicit, kind_fault, path_fault};

/// The paths of all tags.
pub(super) struct TagNames {
    /// The paths, in the order of their tags: the path of tag 1 is first.
    paths: Vec<String>,
    /// The numbers of all tags, sorted by path.
    by_path: Vec<TagNumber>,
    faults: Vec<TagFault>,
    /// The number of calls with a path for which there was no room.
    beyond: u64,
}

/// A path that a tag cannot have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TagFault {
    pub(crate) path: String,
    pub(crate) why: &'static str,
}

/// The largest number of paths in the list of faults.
const FAULTS: usize = 16;

impl TagNames {
    pub(super) const fn new() -> Self {
        Self { paths: Vec::new(), by_path: Vec::new(), faults: Vec::new(), beyond: 0 }
    }

    /// The number of paths that have a tag.
    pub(super) fn len(&self) -> usize {
        self.paths.len()
    }

    /// The tags of all paths below `path`.
    pub(super) fn below(&self, path: &str) -> Vec<TagNumber> {
        let is_below = |other: &str| other.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
        self.by_path.iter().copied().filter(|number| self.path(*number).is_some_and(is_below)).collect()
    }

    /// The tags of the paths above the path of a tag, the nearest first.
    pub(super) fn above(&self, number: TagNumber) -> impl Iterator<Item = TagNumber> + '_ {
        fn parent(path: &str) -> Option<&str> {
            Some(path.rsplit_once('/')?.0)
        }
        let paths = core::iter::successors(self.path(number).and_then(parent), |path| parent(path));
        paths.filter_map(|path| Some(self.by_path[self.find(path).ok()?]))
    }

    fn find(&self, path: &str) -> Result<usize, usize> {
        self.by_path.binary_search_by(|number| self.paths[usize::from(*number) - 1].as_str().cmp(path))
    }

    /// The number of the tag of `path`. `last` is the largest number that a new tag may get.
    pub(super) fn number(&mut self, path: &str, last: TagNumber) -> TagNumber {
        let place = match self.find(path) {
            Ok(place) => return self.by_path[place],
            Err(place) => place,
        };
        if let Some(why) = fault(path) {
            let fault = TagFault { path: path.to_owned(), why };
            if self.faults.len() < FAULTS && !self.faults.contains(&fault) {
                self.faults.push(fault);
            }
            return NO_TAG;
        }
        match TagNumber::try_from(self.paths.len() + 1) {
            Ok(number) if number <= last => {
                self.paths.push(path.to_owned());
                self.by_path.insert(place, number);
                number
            }
            _ => {
                self.beyond += 1;
                NO_TAG
            }
        }
    }

    pub(super) fn path(&self, number: TagNumber) -> Option<&str> {
        self.paths.get(usize::from(number).checked_sub(1)?).map(String::as_str)
    }
}

/// The reason why a tag cannot have this path.
pub(super) fn fault(path: &str) -> Option<&'static str> {
    path_fault(path)
        .or(kind_fault(path, Kind::Heap, Units::Bytes))
        .or((!is_explicit(path)).then_some("a tag's path must be under `explicit/`"))
}

/// The paths of all tags, and the rejected paths, each with its fault.
#[derive(Debug)]
pub(crate) struct TagPaths {
    /// The paths, in the order of their tags: the path of tag 1 is first.
    pub(crate) paths: Vec<String>,
    pub(crate) faults: Vec<TagFault>,
    /// The number of calls with a path for which there was no room.
    pub(crate) beyond: u64,
}

impl TagNames {
    pub(super) fn all(&self) -> TagPaths {
        TagPaths { paths: self.paths.clone(), faults: self.faults.clone(), beyond: self.beyond }
    }
}
