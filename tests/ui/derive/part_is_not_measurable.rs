use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::{Arc, Weak};

use memory_reporter::MallocSizeOf;

#[derive(MallocSizeOf, PartialEq, Eq, Hash)]
struct Key(String);

struct Foreign<T>(T);

/// It has the name of a type of std.
struct Mutex<T>(T);

#[derive(MallocSizeOf)]
struct Pages<T> {
    by_key: HashMap<Key, Option<Foreign<T>>>,
    by_foreign: HashMap<Foreign<u8>, Vec<Key>>,
    both: (Foreign<u16>, Vec<Key>, Key),
    plain: Mutex<u8>,
    boxed: std::rc::Rc<[Foreign<u32>]>,
    measurable: (PhantomData<Foreign<T>>, Weak<Foreign<T>>, *const Foreign<T>, fn(&Foreign<T>)),
    locked: Arc<std::sync::Mutex<Foreign<u64>>>,
}

fn main() {
    let _ = Mutex(Foreign(1).0).0;
}
