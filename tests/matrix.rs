//! Every type of std that is measured and how exactly; the table in the documentation is this list.

use std::alloc::Layout;
use std::any::{Any, TypeId};
use std::backtrace::Backtrace;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, LinkedList, VecDeque, hash_map};
use std::error::Error;
use std::ffi::{CString, OsString};
use std::future::Future;
use std::marker::{PhantomData, PhantomPinned};
use std::path::PathBuf;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, RwLock};
use std::{
    cell, cmp, convert, env, ffi, fs, hash, io, marker, mem, net, num, ops, panic, path, process, ptr, rc, string,
    sync, task, thread, time, vec,
};

use memory_reporter::{MallocSizeOf, MallocSizeOfOps, computed_size_of, malloc_size_of};
use tests::{Counting, golden, grown};

memory_reporter::global_allocator!(Counting);

type MyHasher = hash::BuildHasherDefault<hash_map::DefaultHasher>;

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct OnlyOrd(u8);

impl MallocSizeOf for OnlyOrd {
    const NEEDS_WALK: bool = false;

    fn size_of_excluding_this<R: memory_reporter::Reading>(&self, _: &mut MallocSizeOfOps<R>) -> usize {
        usize::from(self.0) * 0
    }
}
