//! Mirrors of foreign types, and the attribute `stated_by`: a function of the foreign type returns the bytes.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, RwLock};

use memory_reporter::{
    Collection, MallocSizeOf, MallocSizeOfOps, MemoryReporter, Reading, Reports, computed_size_of,
    malloc_size_of,
    measure::{SkipReason, size_summary},
    size_tree,
};
use tests::grown;

/// Types as another crate defines them, without `MallocSizeOf`.
#[allow(unreachable_pub, dead_code, clippy::large_enum_variant, reason = "another crate")]
mod foreign {
    use std::collections::HashMap;
    use std::sync::Arc;

    pub struct Picture {
        pub name: String,
        pub pixels: Vec<u8>,
        pub width: u32,
    }

    pub struct Pair<'a, A: ?Sized, B>(pub Vec<B>, pub &'a A);

    pub enum Shape<T> {
        Nothing,
        Picture(Picture),
        List { items: Vec<Self>, tag: Option<T> },
        Shared(Arc<T>, u8),
    }

    /// A type with so many parts that measuring it needs more than one function.
    pub enum Wide {
        Narrow(String),
        Wide(
            String,
            String,
            String,
            String,
            String,
            String,
            String,
            String,
            String,
            String,
            String,
            String,
            String,
            String,
            String,
            String,
            String,
            String,
        ),
    }

    pub struct Text {
        text: String,
        words: HashMap<u32, u32>,
        pub language: String,
    }

    impl Text {
        pub fn new(text: &str) -> Self {
            Self { text: text.into(), words: HashMap::from([(1, 1)]), language: "en".into() }
        }

        pub fn text(&self) -> &String {
            &self.text
        }

        pub fn words(&self) -> usize {
            self.words.len()
        }
    }

    pub struct Index(pub usize);

    impl Index {
        pub fn memory_usage(&self) -> usize {
            self.0
        }

        pub fn signed_usage(&self) -> i32 {
            -5
        }
    }
}

#[derive(MallocSizeOf)]
#[malloc_size_of(remote = foreign::Picture)]
struct Picture {
    name: String,
    pixels: Vec<u8>,
    width: u32,
}

#[derive(MallocSizeOf)]
#[malloc_size_of(remote = foreign::Pair<'a, A, B>)]
struct Pair<'a, A: ?Sized, B>(Vec<B>, &'a A);

#[derive(MallocSizeOf)]
#[malloc_size_of(remote = foreign::Shape<T>)]
enum Shape<T> {
    Nothing,
    Picture(#[malloc_size_of(with = Picture::measure)] foreign::Picture),
    List {
        #[malloc_size_of(each = Shape::measure)]
        items: Vec<foreign::Shape<T>>,
        tag: Option<T>,
    },
    Shared(Arc<T>, #[malloc_size_of(ignore = "plain data")] u8),
}

#[derive(MallocSizeOf)]
#[allow(clippy::large_enum_variant, reason = "the foreign type has such a variant")]
#[malloc_size_of(remote = foreign::Wide)]
enum Wide {
    Narrow(String),
    #[rustfmt::skip]
    Wide(
        String, String, String, String, String, String, String, String, String, String, String, String,
        String, String, String, String, String, String,
    ),
}

#[derive(MallocSizeOf)]
#[malloc_size_of(remote = foreign::Text)]
struct Text {
    #[malloc_size_of(getter = foreign::Text::text)]
    text: String,
    language: String,
}

#[derive(MallocSizeOf)]
#[malloc_size_of(remote = foreign::Shape<String>, rest = "the program makes only pictures")]
enum OnlyPictures {
    Picture(#[malloc_size_of(with = Picture::measure)] foreign::Picture),
}

#[derive(MallocSizeOf)]
#[malloc_size_of(bound = "T: MallocSizeOf")]
struct Album<T> {
    #[malloc_size_of(with = Picture::measure)]
    cover: foreign::Picture,
    #[malloc_size_of(each = Picture::measure)]
    pictures: Vec<foreign::Picture>,
    #[malloc_size_of(with = Shape::measure)]
    shape: foreign::Shape<T>,
}

fn picture(n: usize) -> foreign::Picture {
    foreign::Picture { name: "x".repeat(n), pixels: vec![0; 10 * n], width: 1 }
}

fn list() -> foreign::Shape<String> {
    foreign::Shape::List {
        items: vec![
            foreign::Shape::Nothing,
            foreign::Shape::Picture(picture(7)),
            foreign::Shape::Shared(Arc::new("shared".into()), 1),
        ],
        tag: Some("tag".into()),
    }
}

#[test]
fn mirrors_measure_what_the_foreign_values_own() {
    let (album, held) =
        grown(|| Album { cover: picture(3), pictures: vec![picture(5), picture(6)], shape: list() });
    assert_eq!(computed_size_of(&album) as isize, held.asked);
    assert_eq!(malloc_size_of(&album) as isize, held.usable);
    assert_eq!(size_summary(&album).blocks as isize, held.blocks);

    let name = String::from("name");
    let (pair, held) = grown(|| foreign::Pair(vec![String::from("ab")], name.as_str()));
    assert_eq!(Pair::measure(&pair, &mut MallocSizeOfOps::computed()) as isize, held.asked);

    let (text, _) = grown(|| foreign::Text::new("twelve bytes"));
    assert_eq!(text.words(), 1);
    assert_eq!(Text::measure(&text, &mut MallocSizeOfOps::computed()), 12 + 2, "the map has no getter");
}

#[test]
fn a_mirror_of_a_wide_variant_measures_all_fields() {
    let text = |n: usize| "x".repeat(n);
    let value = foreign::Wide::Wide(
        text(1),
        text(2),
        text(3),
        text(4),
        text(5),
        text(6),
        text(7),
        text(8),
        text(9),
        text(10),
        text(11),
        text(12),
        text(13),
        text(14),
        text(15),
        text(16),
        text(17),
        text(18),
    );
    let ops = &mut MallocSizeOfOps::computed();
    assert_eq!(Wide::measure(&value, ops), (1..=18).sum::<usize>());
    assert_eq!(Wide::measure(&foreign::Wide::Narrow(text(3)), ops), 3);
}

#[test]
fn variants_that_a_mirror_leaves_out_are_recorded_as_not_seen() {
    let mut ops = MallocSizeOfOps::computed();
    assert_eq!(OnlyPictures::measure(&foreign::Shape::Picture(picture(2)), &mut ops), 22);
    assert_eq!(ops.skipped(), []);
    assert_eq!(OnlyPictures::measure(&list(), &mut ops), 0);
    assert_eq!(ops.skipped()[0].reason, SkipReason::Opaque);
}

#[test]
fn a_tree_has_the_fields_of_mirrors() {
    let album = Album { cover: picture(3), pictures: vec![picture(5)], shape: list() };
    let tree = size_tree(&album);
    let usable = |path: &str| tree.find(path).unwrap_or_else(|| panic!("{path}: {tree:#?}")).total().asked;
    assert_eq!(usable("cover/name"), 3);
    assert_eq!(usable("cover/pixels"), 30);
    assert_eq!(usable("pictures/(elements)/pixels"), 50);
    assert_eq!(usable("shape/List.tag"), 3);
    assert_eq!(tree.total().usable, malloc_size_of(&album));
}

#[test]
fn a_heap_graph_has_the_blocks_of_mirrors() {
    let album = Album { cover: picture(3), pictures: vec![picture(5)], shape: list() };
    let graph = heap_graph::HeapGraph::collect(|roots| roots.add("album", &album));
    let sum: u64 = graph.graph().nodes().map(|node| node.shallow_size()).sum();
    assert!(sum as usize >= malloc_size_of(&album), "{sum}");
}

#[derive(MallocSizeOf)]
struct Search {
    #[malloc_size_of(stated_by = foreign::Index::memory_usage)]
    first: foreign::Index,
    #[malloc_size_of(stated_by = foreign::Index::signed_usage)]
    wrong: foreign::Index,
    names: Vec<String>,
}

impl MemoryReporter for Search {
    fn collect_reports(&self, out: &mut Reports) {
        out.heap("explicit/search", self, "Memory used by the search.");
        out.heap("search-names", &self.names, "Memory used by the names.");
        out.heap("search-again", self, "Memory used by the search.");
        out.heap_tree("explicit/tree", self, 1, "Memory used by the search.");
        let index = &self.first;
        out.heap_with("explicit/with", |ops| ops.stated(index, 7), "Memory used by the index.");
    }
}

#[test]
fn figures_that_values_state_are_marked() {
    let search = Search { first: foreign::Index(300), wrong: foreign::Index(1), names: vec!["ab".into()] };
    assert_eq!(computed_size_of(&search), 300 + 24 + 2, "a negative figure counts as 0 bytes");
    let summary = size_summary(&search);
    assert_eq!((summary.asked, summary.blocks), (326, 2));
    let tree = size_tree(&search);
    assert_eq!(tree.find("first/(stated)").unwrap().own().usable, 300);

    let set = Collection::new().with(&search).collect();
    let description = |path: &str| {
        let report = set.iter().find(|report| report.path == path);
        report.unwrap_or_else(|| panic!("{path}")).description.to_owned()
    };
    let marked =
        " 300 of these bytes are stated by values themselves: counted::foreign_types::foreign::Index.";
    assert_eq!(description("explicit/search"), format!("Memory used by the search.{marked}"));
    assert_eq!(description("search-again"), format!("Memory used by the search.{marked}"));
    assert_eq!(description("search-names"), "Memory used by the names.");
    assert_eq!(description("explicit/tree/first"), format!("Memory used by the search.{marked}"));
    assert_eq!(description("explicit/tree/names"), "Memory used by the search.");
    assert!(description("explicit/with").contains(" 7 of these bytes are stated"));
}

/// Fields that contain a foreign value behind pointers and locks. Most functions of `with` and `each` take the value
/// itself.
#[derive(MallocSizeOf)]
struct LockedPictures<'a> {
    #[malloc_size_of(with = Picture::measure)]
    locked: RwLock<foreign::Picture>,
    #[malloc_size_of(with = Picture::measure)]
    shared: Arc<Mutex<foreign::Picture>>,
    #[malloc_size_of(with = Picture::measure)]
    boxed: Box<foreign::Picture>,
    #[malloc_size_of(with = Picture::measure)]
    quick: parking_lot::Mutex<foreign::Picture>,
    #[malloc_size_of(with = Picture::measure)]
    patient: tokio::sync::RwLock<foreign::Picture>,
    #[malloc_size_of(each = Picture::measure)]
    list: Arc<RwLock<Vec<foreign::Picture>>>,
    #[malloc_size_of(each = named)]
    map: Mutex<HashMap<String, foreign::Picture>>,
    #[malloc_size_of(each = Picture::measure)]
    one: Rc<foreign::Picture>,
    #[malloc_size_of(with = whole)]
    whole: Mutex<Vec<foreign::Picture>>,
    #[malloc_size_of(each = lock)]
    lock: Arc<Mutex<foreign::Picture>>,
    #[malloc_size_of(each = text)]
    #[allow(clippy::box_collection, reason = "a pointer to a container")]
    borrowed: Box<Vec<&'a str>>,
}

fn named<R: Reading>((key, value): (&String, &foreign::Picture), ops: &mut MallocSizeOfOps<R>) -> usize {
    ops.key(key) + Picture::measure(value, ops)
}

/// Takes the field itself, although the field is a lock.
fn whole<R: Reading>(pictures: &Mutex<Vec<foreign::Picture>>, _: &mut MallocSizeOfOps<R>) -> usize {
    pictures.lock().expect("no thread panics").len() * 1_000_000
}

fn lock<R: Reading>(picture: &Mutex<foreign::Picture>, ops: &mut MallocSizeOfOps<R>) -> usize {
    Picture::measure(&picture.lock().expect("no thread panics"), ops) + 2_000_000
}

fn text<R: Reading>(text: &&str, _: &mut MallocSizeOfOps<R>) -> usize {
    text.len() * 10_000_000
}

#[test]
fn functions_reach_values_behind_locks_and_pointers() {
    let make = || LockedPictures {
        locked: RwLock::new(picture(100)),
        shared: Arc::new(Mutex::new(picture(200))),
        boxed: Box::new(picture(300)),
        quick: parking_lot::Mutex::new(picture(400)),
        patient: tokio::sync::RwLock::new(picture(500)),
        list: Arc::new(RwLock::new(vec![picture(600), picture(700)])),
        map: Mutex::new(HashMap::from([("key".into(), picture(800))])),
        one: Rc::new(picture(900)),
        whole: Mutex::default(),
        lock: Arc::new(Mutex::new(picture(1000))),
        borrowed: Box::default(),
    };
    let (mut reached, held) = grown(make);
    assert_eq!(computed_size_of(&reached) as isize, held.asked + 2_000_000);

    reached.whole.get_mut().unwrap().push(picture(1));
    reached.borrowed.push("abc");
    assert!(computed_size_of(&reached) >= 33_000_000);

    // Held locks are skipped.
    let all = computed_size_of(&reached);
    let _held = (reached.locked.write().unwrap(), reached.list.write().unwrap());
    let mut ops = MallocSizeOfOps::computed();
    let rest = reached.size_of_excluding_this(&mut ops);
    assert!(rest < all - 1400, "{rest} {all}");
    assert_eq!(ops.skipped().len(), 2, "{:?}", ops.skipped());
    assert!(ops.skipped().iter().all(|part| part.reason == SkipReason::Locked));
}
