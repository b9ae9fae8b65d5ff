//! Values that point to a static: a static is not a block, and the library must not ask an allocator for its size.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, LinkedList, VecDeque};
use std::ffi::{CStr, OsStr};
use std::fmt::Debug;
use std::path::Path;
use std::pin::Pin;
use std::rc::{self, Rc};
use std::sync::{self, Arc, Mutex};

use memory_reporter::{
    Collection, MallocSizeOf, MallocSizeOfOps, MemoryReporter, Reports, computed_size_of, malloc_size_of,
    measure::{MallocSizeOfEach, size_summary},
    size_tree,
};

/// Asserts that the value owns this many requested bytes, and that each reading returns them.
fn owns<T: MallocSizeOf + ?Sized>(name: &str, value: &T, asked: usize) {
    assert_eq!(computed_size_of(value), asked, "computed: {name}");
    let (usable, summary) = (malloc_size_of(value), size_summary(value));
    assert!(if asked == 0 { usable == 0 } else { usable >= asked }, "measured: {name}: {usable}");
    assert_eq!((summary.asked, summary.usable), (asked, usable), "summary: {name}");
    assert_eq!(size_tree(value).total().usable, usable, "tree: {name}");
    let below_dyn = MallocSizeOfOps::computed().erased(|ops| value.size_of_excluding_this(ops));
    assert_eq!(below_dyn, asked, "below dyn: {name}");
}

#[test]
fn the_static_of_empty_shared_values_is_no_block() {
    let words: Arc<[u64]> = Arc::default();
    let array: Arc<[u64; 0]> = Arc::clone(&words).try_into().expect("an empty slice");
    let unsized_array: Arc<dyn Debug> = Arc::<[u64; 0]>::clone(&array);
    owns("Arc<str>", &Arc::<str>::default(), 0);
    owns("Arc<CStr>", &Arc::<CStr>::default(), 0);
    owns("Arc<[u8]>", &Arc::<[u8]>::default(), 0);
    owns("Arc<[u64]>", &words, 0);
    owns("Arc<[u128]>", &Arc::<[u128]>::default(), 0);
    owns("Arc<[String]>", &Arc::<[String]>::default(), 0);
    owns("Arc<[u8]> of an Arc<str>", &Arc::<[u8]>::from(Arc::<str>::default()), 0);
    owns("Arc<[u64; 0]>", &array, 0);
    owns("Arc<dyn Debug>", &unsized_array, 0);
    owns("Pin<Arc<str>>", &Pin::new(Arc::<str>::default()), 0);
    owns("Pin<Arc<CStr>>", &Pin::new(Arc::<CStr>::default()), 0);
    owns("sync::Weak<str>", &Arc::downgrade(&Arc::<str>::default()), 0);
    owns("Mutex<Arc<str>>", &Mutex::new(Arc::<str>::default()), 0);
    owns("Box<Arc<str>>", &Box::new(Arc::<str>::default()), size_of::<Arc<str>>());
    let many: Vec<Arc<str>> = (0..10).map(|_| Arc::default()).collect();
    owns("Vec<Arc<str>>", &many, 10 * size_of::<Arc<str>>());
    let mut seen = 0;
    let each = |_: &[u64], _: &mut _| {
        seen += 1;
        0
    };
    assert_eq!(words.size_of_each(&mut MallocSizeOfOps::computed(), each), 0);
    assert!(seen <= 1);
}

/// The blocks of these values look like the static. Each block is counted, whether it has one owner or several owners.
#[test]
fn empty_values_in_blocks_of_their_own_are_counted() {
    #[repr(align(64))]
    #[derive(Clone, Debug, MallocSizeOf)]
    struct Aligned(u8);

    let counts = 2 * size_of::<usize>();
    let check = |name: &str, owner: &dyn Fn() -> usize| assert_eq!(owner(), counts, "{name}");
    macro_rules! both {
        ($($name:literal, $pointer:expr;)*) => {$(
            let one = $pointer;
            owns($name, &one, counts);
            let two = one.clone();
            owns($name, &one, counts);
            check($name, &|| computed_size_of(&(one.clone(), two.clone())));
        )*};
    }
    both!(
        "Arc<str>", Arc::<str>::from("");
        "Arc<[u64]>", Arc::<[u64]>::from(Vec::new());
        "Arc<OsStr>", Arc::<OsStr>::from(OsStr::new(""));
        "Arc<Path>", Arc::<Path>::from(Path::new(""));
        "Arc<()>", Arc::new(());
        "Arc<dyn Debug>", Arc::new(()) as Arc<dyn Debug>;
        "Rc<str>", Rc::<str>::default();
        "Rc<[u64]>", Rc::<[u64]>::default();
        "Rc<()>", Rc::new(());
    );
    let of_one_byte = counts + size_of::<usize>();
    owns("Arc<u8>", &Arc::new(1_u8), of_one_byte);
    owns("Arc<CStr>", &Arc::<CStr>::from(c""), of_one_byte);
    owns("Rc<CStr>", &Rc::<CStr>::default(), of_one_byte);
    owns("Arc<[Aligned]>", &Arc::<[Aligned]>::default(), 64);
    owns("Arc<[Aligned]> of one", &Arc::<[Aligned]>::from([Aligned(1)]), 128);
}

#[test]
fn what_is_empty_or_borrowed_owns_nothing() {
    static TEXT: &str = "a text of the program's file";
    owns("&'static str", &TEXT, 0);
    owns("Cow<str>", &Cow::Borrowed(TEXT), 0);
    owns("Box<str>", &Box::<str>::default(), 0);
    owns("Box<[u64]>", &Box::<[u64]>::default(), 0);
    owns("Box<()>", &Box::new(()), 0);
    owns("Box<dyn Debug>", &(Box::new(()) as Box<dyn Debug>), 0);
    owns("String", &String::new(), 0);
    owns("Vec<u64>", &Vec::<u64>::new(), 0);
    owns("Vec<()>", &vec![(); 9], 0);
    owns("VecDeque<u64>", &VecDeque::<u64>::new(), 0);
    owns("LinkedList<u64>", &LinkedList::<u64>::new(), 0);
    owns("HashMap<u64, u64>", &HashMap::<u64, u64>::new(), 0);
    owns("BTreeMap<u64, u64>", &BTreeMap::<u64, u64>::new(), 0);
    owns("rc::Weak<u64>", &rc::Weak::<u64>::new(), 0);
    owns("sync::Weak<u64>", &sync::Weak::<u64>::new(), 0);
}

#[derive(Default, MallocSizeOf)]
struct Page {
    name: Arc<str>,
    numbers: Arc<[u64]>,
    path: Arc<CStr>,
}

impl MemoryReporter for Page {
    fn collect_reports(&self, out: &mut Reports) {
        out.heap("explicit/page", self, "Memory used by the page.");
        out.heap_tree("explicit/parts", self, 3, "Memory used by the page.");
    }
}

#[test]
fn a_report_of_empty_shared_values_is_empty() {
    let page = Page::default();
    let reports = Collection::new().with(&page).collect();
    let amounts: Vec<_> = reports.iter().map(|report| (report.path, report.amount)).collect();
    assert_eq!(amounts, [("explicit/page", 0), ("explicit/parts", 0)]);
    assert_eq!(reports.warnings(), []);
    assert_eq!(page.name.len() + page.numbers.len() + page.path.count_bytes(), 0);
}
