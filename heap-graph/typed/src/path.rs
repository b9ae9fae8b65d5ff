//! Paths of fields, such as `users[].1.email.Some`. Each path is stored once.

use hashbrown::HashMap;

use crate::debug_info::{DebugInfo, DebugNameId};

/// The number of a path of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FieldPathId(u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PathSegment {
    /// The name of a member or a variant.
    Name(DebugNameId),
    /// A name that is not in debug information.
    Word(&'static str),
    /// Any element of a sequence.
    Element,
}

/// All paths found so far. Elements are not numbered, so the number of paths depends only on the types.
#[derive(Debug)]
pub(crate) struct PathTable {
    all: Vec<(FieldPathId, PathSegment)>,
    ids: HashMap<PathKey, FieldPathId>,
    /// The latest results: the values of a type use the same few paths, millions of times.
    recent: Box<[Option<(PathKey, FieldPathId)>; RECENT]>,
}

const RECENT: usize = 256;

/// A path, as its prefix and its last segment.
type PathKey = (FieldPathId, PathSegment);

impl Default for PathTable {
    fn default() -> Self {
        Self { all: Vec::new(), ids: HashMap::new(), recent: Box::new([None; RECENT]) }
    }
}

impl PathTable {
    /// The path without segments.
    pub(crate) const EMPTY: FieldPathId = FieldPathId(0);

    pub(crate) fn add(&mut self, to: FieldPathId, segment: PathSegment) -> FieldPathId {
        let number = match segment {
            PathSegment::Name(name) => name.number(),
            PathSegment::Word(word) => word.len(),
            PathSegment::Element => 0,
        };
        let place = (to.0 as usize).wrapping_mul(31).wrapping_add(number) % RECENT;
        if let Some((key, id)) = self.recent[place]
            && key == (to, segment)
        {
            return id;
        }
        let all = &mut self.all;
        let id = *self.ids.entry((to, segment)).or_insert_with(|| {
            all.push((to, segment));
            FieldPathId(all.len() as u32)
        });
        self.recent[place] = Some(((to, segment), id));
        id
    }

    /// Whether the path contains the name of a member or a variant.
    pub(crate) fn is_named(&self, mut path: FieldPathId) -> bool {
        while let Some((above, segment)) = path.0.checked_sub(1).map(|index| self.all[index as usize]) {
            if segment != PathSegment::Element {
                return true;
            }
            path = above;
        }
        false
    }

    pub(crate) fn text(&self, mut path: FieldPathId, info: &DebugInfo) -> String {
        let mut segments = Vec::new();
        while let Some((above, segment)) = path.0.checked_sub(1).map(|index| self.all[index as usize]) {
            segments.push(segment);
            path = above;
        }
        let mut text = String::new();
        for segment in segments.iter().rev() {
            let word = match segment {
                PathSegment::Element => {
                    text.push_str("[]");
                    continue;
                }
                PathSegment::Name(name) => info.text(*name).trim_start_matches("__"),
                PathSegment::Word(word) => word,
            };
            text.push('.');
            text.push_str(word);
        }
        text
    }
}
