//! A pool that stores each text only once. The crates of this workspace use it.

use core::fmt::Debug;
use core::hash::{BuildHasher as _, Hash};
use core::ops::Range;

use hashbrown::{DefaultHashBuilder, HashTable};

/// The memory of a pool's texts: a `String`, or bytes for texts that need not be UTF-8.
pub trait TextStore: Clone + Debug + Default {
    /// The type of one text.
    type Text: ?Sized + Eq + Hash;

    /// The length of all texts in bytes.
    fn length(&self) -> usize;

    /// Appends a text.
    fn append(&mut self, text: &Self::Text);

    /// The text at this range of the memory.
    fn part(&self, range: Range<usize>) -> &Self::Text;

    /// Frees the room kept for more texts.
    fn shrink(&mut self);
}

macro_rules! store {
    ($store:ty, $text:ty, $append:ident) => {
        impl TextStore for $store {
            type Text = $text;

            fn length(&self) -> usize {
                self.len()
            }

            fn append(&mut self, text: &$text) {
                self.$append(text);
            }

            fn part(&self, range: Range<usize>) -> &$text {
                &self[range]
            }

            fn shrink(&mut self) {
                self.shrink_to_fit();
            }
        }
    };
}
store!(String, str, push_str);
store!(Vec<u8>, [u8], extend_from_slice);

/// Texts with numbers from 0, in the order of first use. All texts are in one block of memory.
#[derive(Clone, Debug, Default)]
pub struct TextPool<S: TextStore = String> {
    store: S,
    /// The end of each text. A text starts at the end of the text before it.
    ends: Vec<usize>,
    numbers: HashTable<u32>,
    /// The hasher has a random seed, because the author of a file can choose texts that collide under a known seed.
    hasher: DefaultHashBuilder,
    /// The number of the last text that was interned. Often, the next text is the same text.
    last: Option<u32>,
}

impl<S: TextStore> TextPool<S> {
    /// The number of texts.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The memory of the texts, of their ends, and of their numbers.
    pub fn parts(&self) -> (&S, &Vec<usize>, &HashTable<u32>) {
        (&self.store, &self.ends, &self.numbers)
    }

    /// All texts, in the order of their numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &S::Text> {
        (0..self.ends.len()).map(|index| text(&self.store, &self.ends, index))
    }

    /// The text with this number.
    ///
    /// # Panics
    ///
    /// Panics if the pool has no such number.
    pub fn get(&self, number: u32) -> &S::Text {
        text(&self.store, &self.ends, number as usize)
    }

    /// The number of a text; `None` if the pool does not contain it.
    pub fn find(&self, wanted: &S::Text) -> Option<u32> {
        self.find_hashed(self.hasher.hash_one(wanted), wanted)
    }

    fn find_hashed(&self, hash: u64, wanted: &S::Text) -> Option<u32> {
        self.numbers.find(hash, |number| self.get(*number) == wanted).copied()
    }

    /// The number of a text. Adds the text if the pool does not contain it. `None` if all numbers are used.
    pub fn intern(&mut self, wanted: &S::Text) -> Option<u32> {
        if let Some(last) = self.last.filter(|last| self.get(*last) == wanted) {
            return Some(last);
        }
        let hash = self.hasher.hash_one(wanted);
        let number = match self.find_hashed(hash, wanted) {
            Some(known) => known,
            None => self.add(hash, wanted)?,
        };
        self.last = Some(number);
        Some(number)
    }

    fn add(&mut self, hash: u64, added: &S::Text) -> Option<u32> {
        let number = u32::try_from(self.ends.len()).ok().filter(|number| *number < u32::MAX)?;
        self.store.append(added);
        self.ends.push(self.store.length());
        let Self { store, ends, numbers, hasher, .. } = self;
        numbers.insert_unique(hash, number, |number| hasher.hash_one(text(store, ends, *number as usize)));
        Some(number)
    }

    /// Frees the room kept for more texts.
    pub fn shrink(&mut self) {
        self.store.shrink();
        self.ends.shrink_to_fit();
    }
}

fn text<'a, S: TextStore>(store: &'a S, ends: &[usize], index: usize) -> &'a S::Text {
    let start = index.checked_sub(1).map_or(0, |before| ends[before]);
    store.part(start..ends[index])
}
