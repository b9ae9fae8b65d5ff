//! Small vectors, inline and on the heap. A test compiles this program with both forms of the crate smallvec.

use std::hint::black_box;
use std::mem::forget;

use smallvec::SmallVec;

#[allow(dead_code, reason = "it takes room")]
struct One(u64);

#[allow(dead_code, reason = "it takes room")]
struct Two(u64);

struct Store {
    inline: SmallVec<[Box<One>; 4]>,
    spilled: SmallVec<[Box<Two>; 2]>,
    /// A vector that was on the heap and is inline again. Words of the old buffer follow its elements.
    again: SmallVec<[Box<One>; 4]>,
}

fn main() {
    let mut again: SmallVec<_> = (0..6).map(|number| Box::new(One(number))).collect();
    again.truncate(1);
    again.shrink_to_fit();
    let store = Box::new(Store {
        inline: (0..2).map(|number| Box::new(One(number))).collect(),
        spilled: (0..5).map(|number| Box::new(Two(number))).collect(),
        again,
    });
    assert!(store.spilled.spilled() && !store.inline.spilled() && !store.again.spilled());
    forget(black_box(store));
}
