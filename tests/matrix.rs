//! Lists every type of std that has a size, and how exactly it is measured. The compiler checks that each type
//! implements the trait. A test checks that the table of the documentation is equal to this list.

use std::any::Any;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, LinkedList, VecDeque, hash_map};
use std::error::Error;
use std::ffi::{CString, OsString};
use std::fmt::Write as _;

use std::path::PathBuf;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, RwLock};
use std::{
    alloc, any, array, backtrace, cell, cmp, convert, env, ffi, fs, hash, io, marker, mem, net, num, ops,
    panic, path, process, ptr, rc, slice, str, string, sync, task, thread, time, vec,
};

use memory_reporter::{MallocSizeOf, MallocSizeOfOps, Reading, computed_size_of, malloc_size_of};
use tests::{golden, grown};

type MyHasher = hash::BuildHasherDefault<hash_map::DefaultHasher>;

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct OnlyOrd(u8);

impl MallocSizeOf for OnlyOrd {
    const NEEDS_WALK: bool = false;

    fn size_of_excluding_this<R: Reading>(&self, _: &mut MallocSizeOfOps<R>) -> usize {
        0
    }
}

/// How much of a type the library sees. The documentation explains each value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Exact,
    Computed,
    AtLeast,
    Opaque,
}

impl Seen {
    fn word(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Computed => "computed",
            Self::AtLeast => "at least",
            Self::Opaque => "opaque",
        }
    }
}

struct Row {
    name: String,
    type_name: &'static str,
    seen: Seen,
    note: &'static str,
}

/// Makes a row for a type, which must implement the trait.
fn row<T: MallocSizeOf + ?Sized>(seen: Seen, tokens: &str, note: &'static str) -> Row {
    Row { name: spelled(tokens), type_name: any::type_name::<T>(), seen, note }
}

/// A type's tokens in the usual spelling, without the spaces that the compiler puts between them.
fn spelled(tokens: &str) -> String {
    let mut name = String::new();
    let mut space = false;
    for c in tokens.chars() {
        if c.is_whitespace() {
            space = true;
            continue;
        }
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let apart = name
            .chars()
            .last()
            .is_some_and(|last| word(last) && (word(c) || c == '"') || last == '"' && word(c));
        if space && apart {
            name.push(' ');
        }
        space = false;
        name.push(c);
    }
    let name = name.replace(",)", "\u{0})").replace(',', ", ").replace('\u{0}', ",");
    name.replace("->", " -> ")
        .replace(';', "; ")
        .replace('+', " + ")
        .replace('=', " = ")
        .replace(" =  = ", "==")
}

macro_rules! rows {
    ($($seen:ident $type:ty $(= $note:literal)?;)*) => {
        vec![$(row::<$type>(Seen::$seen, stringify!($type), concat!($($note)?))),*]
    };
}

/// The types that programs use most. The comparison with other measuring crates uses these types.
fn asked_of_all() -> Vec<Row> {
    rows![
    Exact Box<u8>;
    Exact Box<str>;
    Exact Box<[u8]>;
    Exact Box<[String]>;
    Opaque Box<dyn Fn()> = "the box is counted; captured values are not seen";
    Opaque Box<dyn Any> = "the box is counted; memory that the value owns is not seen";
    Exact Rc<u8> = "counted once, its two counts included";
    Exact Rc<str>;
    Exact Rc<[u8]>;
    Exact Arc<u8> = "counted once, its two counts included";
    Exact Arc<str> = "the empty value of `Default` is a static of std: 0";
    Exact Arc<[u8]> = "the empty value of `Default` is a static of std: 0";
    Opaque rc::Weak<u8> = "0 while a strong pointer owns the block; afterwards the size of its two counts, once";
    Opaque sync::Weak<u8> = "0 while a strong pointer owns the block; afterwards the size of its two counts, once";
    Exact Cell<u8> = "plain data only";
    Exact Cell<Option<u8>> = "plain data only";
    Exact RefCell<u8> = "recorded as skipped while mutably borrowed";
    Exact cell::UnsafeCell<u8> = "plain data only";
    Exact cell::OnceCell<String>;
    Exact cell::LazyCell<String> = "opaque before Rust 1.94; the walk never initializes the value";
    Exact sync::OnceLock<String>;
    Exact sync::LazyLock<String> = "opaque before Rust 1.94; the walk never initializes the value";
    Exact sync::Once;
    Exact Mutex<String> = "recorded as skipped while locked; a poisoned lock is measured";
    Exact RwLock<String> = "recorded as skipped while locked for writing; a poisoned lock is measured";
    Exact sync::Condvar;
    Exact sync::Barrier;
    Exact Vec<u8>;
    Exact Vec<String>;
    Computed VecDeque<u8> = "the start of the block is visible if the elements wrap around";
    Exact BinaryHeap<u8>;
    Computed LinkedList<u8>;
    Computed HashMap<u8,u8> = "after many removals, about one table in a thousand counts as half of its size";
    Computed HashMap<String,String,MyHasher> = "as above";
    Computed HashSet<u8> = "as above";
    Computed HashSet<String,MyHasher> = "as above";
    Computed BTreeMap<u8,u8> = "except the empty leaf that an emptied map keeps";
    Computed BTreeMap<OnlyOrd,OnlyOrd> = "as above";
    Computed BTreeSet<u8> = "as above";
    Exact String;
    Exact str;
    Exact CString;
    Exact ffi::CStr;
    Exact OsString;
    Exact ffi::OsStr;
    Exact PathBuf;
    Exact path::Path;
    Exact Box<path::Path>;
    Exact Cow<'static,str>;
    Exact Cow<'static,[u8]>;
    Exact Option<String>;
    Exact Result<String,u8>;
    Exact ();
    Exact (u8,);
    Exact (u8,u8,u8,u8);
    Exact (u8,u8,u8,u8,u8,u8,u8,u8);
    Exact (u8,u8,u8,u8,u8,u8,u8,u8,u8,u8,u8,u8);
    Exact [u8;3];
    Exact [String;40];
    Exact [u8];
    Exact bool;
    Exact char;
    Exact u128;
    Exact f64;
    Exact &'static str;
    Exact &'static u8;
    Exact *const u8;
    Exact fn();
    Exact fn(u8)->u8;
    Exact fn(u8,u8,u8,u8,u8,u8)->u8;
    Exact sync::atomic::AtomicU8;
    Exact sync::atomic::AtomicU64;
    Exact sync::atomic::AtomicBool;
    Exact sync::atomic::AtomicPtr<u8>;
    Exact ops::Range<u32>;
    Exact ops::RangeInclusive<u32>;
    Exact ops::RangeFrom<u32>;
    Exact ops::RangeFull;
    Exact ops::Bound<u32>;
    Exact time::Duration;
    Exact time::Instant;
    Exact time::SystemTime;
    Exact num::NonZeroU8;
    Exact num::NonZeroU32;
    Exact num::NonZeroI128;
    Exact marker::PhantomData<u8>;
    Exact marker::PhantomPinned;
    Exact Pin<Box<u8>>;
    Exact mem::ManuallyDrop<String>;
    Exact mem::MaybeUninit<u8> = "plain data only";
    Exact mem::Discriminant<Option<u8>>;
    Exact ptr::NonNull<u8>;
    Opaque sync::mpsc::Sender<u8> = "waiting messages are not seen";
    Opaque sync::mpsc::SyncSender<u8> = "waiting messages are not seen";
    Opaque sync::mpsc::Receiver<u8> = "waiting messages are not seen";
    Opaque thread::JoinHandle<u8>;
    Opaque thread::Thread;
    Exact thread::ThreadId;
    Exact net::IpAddr;
    Exact net::Ipv4Addr;
    Exact net::SocketAddr;
    Exact ops::ControlFlow<u8,u8>;
    Exact task::Poll<u8>;
    Exact num::Wrapping<u8>;
    Exact num::Saturating<u8>;
    Exact cmp::Reverse<String>;
    Exact cmp::Ordering;
    Exact alloc::Layout;
    Exact hash::BuildHasherDefault<hash_map::DefaultHasher>;
    Exact hash_map::RandomState;
    Exact any::TypeId;
    Exact convert::Infallible;
    Exact panic::AssertUnwindSafe<u8>;
    Computed io::BufReader<fs::File>;
    Exact io::Cursor<Vec<u8>>;
    AtLeast vec::IntoIter<u8> = "the remaining elements; free room before and after them is not seen";
    Exact fs::File;
    Opaque io::Error = "a custom error: its two boxes; memory that the inner error owns is not seen";
    Opaque backtrace::Backtrace = "0 if it was not captured";
    ]
}

/// Further types that ordinary programs use.
fn more() -> Vec<Row> {
    rows![
    Exact Pin<Box<String>>;
    Exact Box<ffi::CStr>;
    Exact Box<ffi::OsStr>;
    Exact Vec<Option<Box<str>>>;
    Exact array::IntoIter<String,3>;
    Exact io::BufWriter<Vec<u8>>;
    Exact io::Take<Vec<u8>>;
    Exact io::Chain<Vec<u8>,Vec<u8>>;
    Exact io::Stdin;
    Exact io::ErrorKind;
    Exact process::Output;
    Exact process::Child;
    Exact process::ExitStatus;
    Exact fs::Metadata;
    Exact net::TcpStream;
    Exact net::UdpSocket;
    Exact net::SocketAddrV6;
    Exact num::ParseIntError;
    Exact env::VarError;
    Exact str::Chars<'static>;
    Exact slice::Iter<'static, u8>;
    AtLeast string::FromUtf8Error = "the bytes, not their capacity";
    Exact sync::PoisonError<String>;
    Exact panic::Location<'static>;
    Exact unsafe extern "C" fn(*mut u8)->u8;
    Exact fn(&String)->u8;
    Exact Pin<Rc<u8>>;
    Exact Pin<Arc<u8>>;
    Opaque Cell<String>;
    Opaque cell::UnsafeCell<String>;
    Opaque mem::MaybeUninit<String>;
    Opaque Box<dyn FnMut(u8,u8)->u8 + Send> = "the box is counted; captured values are not seen";
    Opaque Box<dyn FnOnce(&str)->u8 + Send + Sync> = "the box is counted; captured values are not seen";
    Opaque Box<dyn Any + Send + Sync> = "the box is counted; memory that the value owns is not seen";
    Opaque Box<dyn Error + Send + Sync> = "the box is counted; memory that the error owns is not seen";
    Opaque Box<dyn Iterator<Item=u8>> = "the box is counted; memory that the iterator owns is not seen";
    Opaque Pin<Box<dyn Future<Output=u8> + Send>> = "the box is counted; memory that the future owns is not seen";
    Opaque Box<dyn io::Read + Send> = "the box is counted; memory that the reader owns is not seen";
    Opaque Box<dyn io::Write + Send> = "the box is counted; memory that the writer owns is not seen";
    Opaque io::LineWriter<Vec<u8>> = "the inner writer is counted; the buffer is not seen";
    Opaque thread::Builder;
    Opaque task::Waker;
    Opaque process::Command;
    Opaque env::Args;
    Opaque fs::ReadDir;
    Opaque ffi::NulError;
    ]
}

#[test]
fn the_table_in_the_documentation_is_this_list() {
    let (first, more) = (asked_of_all(), more());
    let all = || first.iter().chain(&more);
    let count = |seen| all().filter(|row| row.seen == seen).count();
    let mut text = String::from("The types of std that are measured, by example.\n\n");
    writeln!(
        text,
        "{} exact, {} computed, {} at least, {} opaque.\n",
        count(Seen::Exact),
        count(Seen::Computed),
        count(Seen::AtLeast),
        count(Seen::Opaque)
    )
    .unwrap();
    text.push_str("| type | how exactly | what to know |\n|---|---|---|\n");
    for Row { name, seen, note, .. } in all() {
        writeln!(text, "| `{name}` | {} | {note} |", seen.word()).unwrap();
    }
    assert_eq!(first.len(), 119, "the comparison's types");
    let mut names: Vec<_> = all().map(|row| row.name.as_str()).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "a type has two rows: {names:?}");
    golden("reporter/src/docs/std_types.md", &text);
}

/// Asserts that the library sees the value as the list states for its type.
fn check<T: MallocSizeOf>(make: impl FnOnce() -> T) {
    let type_name = any::type_name::<T>();
    let rows: Vec<Row> = asked_of_all().into_iter().chain(more()).collect();
    let row = rows.iter().find(|row| row.type_name == type_name);
    let Row { name, seen, .. } = row.unwrap_or_else(|| panic!("{type_name} is not in the list"));
    let (value, held) = grown(make);
    let mut ops = MallocSizeOfOps::computed();
    let computed = value.size_of_excluding_this(&mut ops) as isize;
    let measured = malloc_size_of(&value) as isize;
    let whole = ops.skipped().is_empty();
    match seen {
        Seen::Exact => assert_eq!((computed, measured, whole), (held.asked, held.usable, true), "{name}"),
        Seen::Computed => {
            assert_eq!((computed, whole), (held.asked, true), "{name}");
            assert!((held.asked..=held.usable).contains(&measured), "{name}: {measured} of {held:?}");
        }
        Seen::AtLeast => assert!(0 < computed && computed <= held.asked, "{name}: {computed} of {held:?}"),
        Seen::Opaque => {
            assert!(computed <= held.asked, "{name}: {computed} of {held:?}");
            assert!(!whole, "{name} must be recorded as skipped");
        }
    }
}

fn text(n: usize) -> String {
    "x".repeat(n)
}

#[test]
fn values_are_seen_as_the_list_says() {
    check(|| Box::new(1_u8));
    check(|| text(40).into_boxed_str());
    check(|| vec![1_u8; 40].into_boxed_slice());
    check(|| vec![text(3), text(50)].into_boxed_slice());
    check(|| PathBuf::from(text(50)).into_boxed_path());
    check(|| CString::new(text(50)).unwrap().into_boxed_c_str());
    check(|| OsString::from(text(50)).into_boxed_os_str());
    check(|| Rc::new(1_u8));
    check(|| Rc::<str>::from("eleven bytes"));
    check(|| Rc::<[u8]>::from([1_u8; 21]));
    check(|| Arc::new(1_u8));
    check(|| Arc::<str>::from("eleven bytes"));
    check(|| Arc::<[u8]>::from([1_u8; 21]));
    check(|| Rc::pin(1_u8));
    check(|| Arc::pin(1_u8));
    check(|| Box::pin(text(9)));
    check(|| RefCell::new(1_u8));
    check(|| cell::OnceCell::from(text(9)));
    check(|| sync::OnceLock::from(text(9)));
    check(|| Mutex::new(text(9)));
    check(|| RwLock::new(text(9)));
    check(sync::Condvar::new);
    check(|| sync::Barrier::new(3));
    check(|| vec![1_u8; 100]);
    check(|| vec![text(9), String::new()]);
    check(|| (0..100_u8).collect::<BinaryHeap<_>>());
    check(|| (0..100_u8).collect::<VecDeque<_>>());
    check(|| (0..100_u8).collect::<LinkedList<_>>());
    check(|| (0..100_u8).map(|i| (i, i)).collect::<HashMap<_, _>>());
    check(|| (0..100).map(|i| (text(i), text(1))).collect::<HashMap<_, _, MyHasher>>());
    check(|| (0..100_u8).collect::<HashSet<_>>());
    check(|| (0..100).map(text).collect::<HashSet<_, MyHasher>>());
    check(|| (0..100_u8).map(|i| (i, i)).collect::<BTreeMap<_, _>>());
    check(|| (0..100_u8).map(|i| (OnlyOrd(i), OnlyOrd(i))).collect::<BTreeMap<_, _>>());
    check(|| (0..100_u8).collect::<BTreeSet<_>>());
    check(|| text(100));
    check(|| CString::new(text(50)).unwrap());
    check(|| OsString::from(text(50)));
    check(|| PathBuf::from(text(50)));
    check(|| Cow::<'static, str>::Owned(text(5)));
    check(|| Some(text(5)));
    check(|| Ok::<_, u8>(text(5)));
    check(|| array::from_fn::<_, 40, _>(text));
    check(|| mem::ManuallyDrop::new(String::new()));
    check(|| cmp::Reverse(text(5)));
    check(|| io::Cursor::new(vec![1_u8; 5]));
    check(|| io::BufReader::with_capacity(777, fs::File::open(env::current_exe().unwrap()).unwrap()));
    check(|| io::BufWriter::with_capacity(777, vec![1_u8; 5]));
    check(|| vec![Some(text(3).into_boxed_str()), None]);
    check(|| [text(1), text(2), text(3)].into_iter());
    check(|| process::Output { status: Default::default(), stdout: vec![1; 9], stderr: Vec::new() });
    check(|| sync::PoisonError::new(text(5)));
    check(|| text(5).as_bytes().to_vec().into_iter());
    check(|| String::from_utf8(vec![0xff; 9]).unwrap_err());
    check(|| task::Poll::Ready(1_u8));
    check(|| net::UdpSocket::bind("127.0.0.1:0").unwrap());
}

#[test]
fn what_is_opaque_is_recorded_as_not_seen() {
    check(|| Cell::new(text(9)));
    check(|| cell::UnsafeCell::new(text(9)));
    check(mem::MaybeUninit::<String>::uninit);
    check(|| -> Box<dyn Fn()> {
        let captured = text(9);
        Box::new(move || drop(captured.clone()))
    });
    check(|| -> Box<dyn Any> { Box::new(text(9)) });
    check(|| -> Box<dyn Any + Send + Sync> { Box::new(text(9)) });
    check(|| -> Box<dyn Error + Send + Sync> { Box::from(text(9)) });
    check(|| -> Box<dyn Iterator<Item = u8>> { Box::new(text(9).into_bytes().into_iter()) });
    check(|| -> Pin<Box<dyn Future<Output = u8> + Send>> {
        let captured = text(9);
        Box::pin(async move { captured.len() as u8 })
    });
    check(|| Rc::downgrade(&Rc::new(1_u8)));
    check(|| Arc::downgrade(&Arc::new(1_u8)));
    check(|| sync::mpsc::channel::<u8>().0);
    check(|| sync::mpsc::sync_channel::<u8>(1).0);
    check(|| sync::mpsc::sync_channel::<u8>(1).1);
    check(|| thread::spawn(|| 1_u8));
    check(thread::current);
    check(|| io::Error::other("custom"));
    check(backtrace::Backtrace::force_capture);
    check(|| io::LineWriter::new(vec![1_u8; 9]));
    check(|| process::Command::new("true"));
    check(|| CString::new("a\0b").unwrap_err());
}

#[test]
fn the_blocks_of_opaque_types_that_can_be_seen_are_counted() {
    let closure = |n: u64| -> Box<dyn Fn() -> u64> { Box::new(move || n) };
    assert_eq!(computed_size_of(&closure(1)), 8);
    assert_eq!(computed_size_of::<Box<dyn Any>>(&(Box::new([0_u8; 33]) as Box<dyn Any>)), 33);
    // A custom error has two boxes; an error of the system has no box.
    let (error, held) = grown(|| io::Error::other(std::fmt::Error));
    assert_eq!(computed_size_of(&error) as isize, held.asked);
    let (error, held) = grown(|| io::Error::other("ten".parse::<u8>().unwrap_err()));
    assert_eq!(computed_size_of(&error) as isize, held.asked);
    assert_eq!(computed_size_of(&io::Error::from_raw_os_error(2)), 0);
}

#[test]
fn a_closure_without_captures_and_a_disabled_backtrace_own_nothing() {
    let mut ops = MallocSizeOfOps::computed();
    let nothing: Box<dyn Fn(&str) -> bool + Send> = Box::new(str::is_empty);
    assert_eq!(nothing.size_of_excluding_this(&mut ops), 0);
    assert_eq!(backtrace::Backtrace::disabled().size_of_excluding_this(&mut ops), 0);
    assert!(ops.skipped().is_empty());
}

#[test]
fn the_block_that_weak_pointers_keep_is_counted_once() {
    let strong = Rc::new(text(100));
    let weak: Vec<rc::Weak<String>> = (0..10).map(|_| Rc::downgrade(&strong)).collect();
    let vector = 10 * size_of::<rc::Weak<String>>();
    assert_eq!(computed_size_of(&weak), vector, "the strong pointer owns it");
    drop(strong);
    assert_eq!(computed_size_of(&weak), vector + 16, "the two counts");
    let dangling = sync::Weak::<String>::new();
    let of_a_trait: sync::Weak<dyn Any> = sync::Weak::<String>::new();
    let mut ops = MallocSizeOfOps::computed();
    assert_eq!(dangling.size_of_excluding_this(&mut ops), 0);
    assert_eq!(of_a_trait.size_of_excluding_this(&mut ops), 0);
    assert!(ops.skipped().is_empty());
}

#[test]
fn lazy_values_are_seen_once_they_are_there() {
    let lock = sync::LazyLock::<String>::new(|| text(100));
    let cell = cell::LazyCell::<String>::new(|| text(100));
    assert_eq!(
        computed_size_of(&lock) + computed_size_of(&cell),
        0,
        "measuring must not initialize the value"
    );
    assert_eq!(lock.len() + cell.len(), 200);
    let mut ops = MallocSizeOfOps::computed();
    let bytes = lock.size_of_excluding_this(&mut ops) + cell.size_of_excluding_this(&mut ops);
    // Before Rust 1.94, std gives no access to the contents of these types.
    assert!(bytes == 200 && ops.skipped().is_empty() || bytes == 0 && ops.skipped().len() == 2);
}
