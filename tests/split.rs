//! Values that the derive, or a handwritten impl, splits into several sizes.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::rc::Rc;

use memory_reporter::{
    Collection, MallocSizeOf, MallocSizeOfOps, MemoryReporter, Reading, Reports, collect_report,
    malloc_size_of,
    measure::{AddSizeOf, add_size_of},
};

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Sizes {
    text: usize,
    pictures: usize,
    other: usize,
}

impl Sizes {
    fn sum(self) -> usize {
        self.text + self.pictures + self.other
    }
}

/// A type of another crate.
struct Blob(Vec<u8>);

fn blob<R: Reading>(blob: &Blob, ops: &mut MallocSizeOfOps<R>) -> usize {
    ops.field("0", &blob.0)
}

#[derive(MallocSizeOf)]
#[malloc_size_of(sizes = Sizes)]
struct Page<T> {
    #[malloc_size_of(add_to = text)]
    title: String,
    #[malloc_size_of(add_to = pictures, with = blob)]
    icon: Blob,
    #[malloc_size_of(add_to = pictures, each = blob)]
    pictures: Vec<Blob>,
    #[malloc_size_of(split)]
    body: Body,
    #[malloc_size_of(add_to = other, split)]
    frames: Vec<Body>,
    #[malloc_size_of(add_to = other, split)]
    boxed: Box<Body>,
    #[malloc_size_of(add_to = other)]
    extra: HashMap<u32, T>,
    #[malloc_size_of(ignore = "belongs to the caller")]
    _caller: String,
    _id: u64,
    _marker: PhantomData<T>,
}

#[derive(MallocSizeOf)]
#[malloc_size_of(sizes = Sizes)]
enum Body {
    Empty,
    Text(#[malloc_size_of(add_to = text)] String),
    Picture {
        #[malloc_size_of(add_to = pictures)]
        data: Vec<u8>,
        #[malloc_size_of(conditional, add_to = "text")]
        shared: Rc<String>,
        _width: u32,
    },
    #[malloc_size_of(ignore = "counted by its owner")]
    Foreign(#[allow(dead_code, reason = "never read")] String),
}

fn page(shared: &Rc<String>) -> Page<String> {
    let picture = |n| Body::Picture { data: vec![0; n], shared: Rc::clone(shared), _width: 1 };
    Page {
        title: "x".repeat(10),
        icon: Blob(vec![0; 100]),
        pictures: vec![Blob(vec![0; 200])],
        body: picture(300),
        frames: vec![Body::Text("x".repeat(40)), Body::Empty, picture(50), Body::Foreign("x".repeat(999))],
        boxed: Box::new(Body::Text("x".repeat(70))),
        extra: HashMap::from([(1, "x".repeat(33))]),
        _caller: "x".repeat(999),
        _id: 1,
        _marker: PhantomData,
    }
}

#[test]
fn the_parts_add_up_to_the_whole() {
    let shared = Rc::new("x".repeat(30));
    let page = page(&shared);
    let mut sizes = Sizes::default();
    add_size_of(&page, &mut sizes);
    assert_eq!(sizes.sum(), malloc_size_of(&page));
    add_size_of(&page, &mut sizes);
    assert_eq!(sizes.sum(), 2 * malloc_size_of(&page), "it adds");

    let mut computed = Sizes::default();
    page.add_size_of_excluding_this(&mut MallocSizeOfOps::computed(), &mut computed);
    let rc = 2 * size_of::<usize>() + size_of::<String>() + 30;
    assert_eq!(computed.text, 10 + 40 + 70 + rc);
    assert_eq!(computed.pictures, 100 + size_of::<Blob>() + 200 + 300 + 50);
}

/// A type with a handwritten impl. Programs need such an impl if the parts of a type are not its fields.
struct Store {
    bytes: Vec<u8>,
    names: Vec<String>,
}

impl AddSizeOf<Sizes> for Store {
    fn add_size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>, sizes: &mut Sizes) {
        sizes.other += ops.field("bytes", &self.bytes);
        sizes.text += ops.field("names", &self.names);
    }
}

struct Pages(Page<String>, Store, Rc<String>);

impl MemoryReporter for Pages {
    fn collect_reports(&self, out: &mut Reports) {
        collect_report!(out, "explicit/shared", Heap, &self.2, "Memory used by shared text.");
        let sizes: Sizes = out.split(&self.0);
        collect_report!(out, "explicit/page/text", Heap, Bytes, sizes.text, "Memory used by text.");
        collect_report!(
            out,
            "explicit/page/pictures",
            Heap,
            Bytes,
            sizes.pictures,
            "Memory used by pictures."
        );
        collect_report!(out, "explicit/page/other", Heap, Bytes, sizes.other, "Memory used by the rest.");
        let sizes: Sizes = out.split(&self.1);
        collect_report!(out, "explicit/store", Heap, Bytes, sizes.sum(), "Memory used by the store.");
    }
}

#[test]
fn a_reporter_splits_and_counts_shared_blocks_once() {
    let shared = Rc::new("x".repeat(30));
    let store = Store { bytes: vec![0; 10], names: vec!["x".repeat(20)] };
    let pages = Pages(page(&shared), store, shared);
    let set = Collection::new().with(&pages).collect();
    assert!(set.warnings().is_empty());
    let sum: i64 = set.iter().map(|report| report.amount).sum();
    let store = malloc_size_of(&pages.1.bytes) + malloc_size_of(&pages.1.names);
    // The size of the page itself includes the shared text, so `explicit/shared` adds no bytes to the sum.
    assert_eq!(sum as usize, malloc_size_of(&pages.0) + store);
}
