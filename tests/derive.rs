//! Tests the derive by the sizes that it computes.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::rc::{self, Rc};
use std::sync::{self, atomic::AtomicPtr};

use memory_reporter::__private::SealedReading;
use memory_reporter::{
    MallocSizeOf, MallocSizeOfOps, Reading, computed_size_of, malloc_size_of_dyn,
    measure::{Edge, SizeOfIncludingThis, WalkObserver, WalkState, WalkedBlock},
};

const TEXT: usize = size_of::<String>();

fn text(n: usize) -> String {
    "x".repeat(n)
}

#[derive(MallocSizeOf)]
struct Named {
    title: String,
    count: u32,
    words: Vec<String>,
}

#[derive(MallocSizeOf)]
struct Tuple(String, u8, Box<u64>);

#[derive(MallocSizeOf)]
struct Unit;

#[derive(MallocSizeOf)]
struct Generic<'a, T, const N: usize>
where
    T: Clone,
{
    parts: [T; N],
    borrowed: &'a [String],
}

#[derive(MallocSizeOf)]
enum Shape {
    Nothing,
    Text(String),
    Both {
        first: String,
        second: Vec<u8>,
        plain: u8,
    },
    #[malloc_size_of(ignore = "counted by its owner")]
    Ignored(#[allow(dead_code, reason = "never read")] String),
}

#[derive(MallocSizeOf)]
enum Never {}

#[test]
fn every_shape() {
    let named = Named { title: text(5), count: 1, words: vec![text(7), text(8)] };
    assert_eq!(computed_size_of(&named) + named.count as usize, 5 + 2 * TEXT + 15 + 1);
    assert_eq!(computed_size_of(&Tuple(text(5), 0, Box::new(1))), 5 + 8);
    assert_eq!(computed_size_of(&Unit), 0);
    let borrowed = [text(100)];
    let generic = Generic { parts: [text(1), text(2), text(3)], borrowed: &borrowed };
    assert_eq!((computed_size_of(&generic), generic.borrowed.len()), (6, 1));
    let shapes = [
        Shape::Nothing,
        Shape::Text(text(10)),
        Shape::Both { first: text(20), second: vec![0; 30], plain: 1 },
        Shape::Ignored(text(1000)),
    ];
    assert_eq!(computed_size_of(&shapes), 60);
    assert_eq!(computed_size_of(&None::<Never>), 0);
}

#[derive(MallocSizeOf)]
struct Plain {
    _x: f64,
    _y: [u8; 3],
    _marker: PhantomData<String>,
}

#[test]
fn plain_data_is_not_walked() {
    const { assert!(!Plain::NEEDS_WALK) };
    const { assert!(!<Generic<'static, u8, 4> as MallocSizeOf>::NEEDS_WALK) };
    const { assert!(<Generic<'static, String, 4> as MallocSizeOf>::NEEDS_WALK) };
    const { assert!(!<Option<(Plain, [Plain; 9])> as MallocSizeOf>::NEEDS_WALK) };
    const { assert!(Shape::NEEDS_WALK && Node::NEEDS_WALK && !Never::NEEDS_WALK) };
}

#[derive(MallocSizeOf)]
struct Node {
    next: Option<Box<Node>>,
}

#[derive(MallocSizeOf)]
struct Branch {
    leaves: Vec<Leaf>,
}

#[derive(MallocSizeOf)]
enum Leaf {
    Text(String),
    Branch(HashMap<u32, Branch>),
    Shared(Rc<Branch>),
}

#[test]
fn recursive_types() {
    let node = Node { next: Some(Box::new(Node { next: Some(Box::new(Node { next: None })) })) };
    assert_eq!(computed_size_of(&node), 16);
    let shared = Rc::new(Branch { leaves: Vec::new() });
    let branch = Branch {
        leaves: vec![
            Leaf::Text(text(3)),
            Leaf::Branch(HashMap::new()),
            Leaf::Shared(Rc::clone(&shared)),
            Leaf::Shared(shared),
        ],
    };
    assert_eq!(computed_size_of(&branch), 4 * size_of::<Leaf>() + 3 + 16 + size_of::<Branch>());
}

/// Another crate's type.
mod foreign {
    pub(crate) struct Blob(pub(crate) Vec<u8>);
    #[derive(PartialEq, Eq, Hash)]
    pub(crate) struct Key(pub(crate) u8);
}

fn blob<R: Reading>(blob: &foreign::Blob, ops: &mut MallocSizeOfOps<R>) -> usize {
    ops.field("0", &blob.0)
}

fn entry<R: Reading>((_, value): (&foreign::Key, &foreign::Blob), ops: &mut MallocSizeOfOps<R>) -> usize {
    blob(value, ops)
}

#[derive(MallocSizeOf)]
struct Foreign {
    #[malloc_size_of(with = blob)]
    one: foreign::Blob,
    #[malloc_size_of(each = blob)]
    many: Vec<foreign::Blob>,
    #[malloc_size_of(each = entry)]
    map: HashMap<foreign::Key, foreign::Blob>,
    #[malloc_size_of(each = blob)]
    boxed: Box<foreign::Blob>,
    #[malloc_size_of(ignore = "belongs to the caller")]
    _caller: foreign::Blob,
}

#[test]
fn foreign_types() {
    let make = |n| foreign::Blob(vec![0; n]);
    let value = Foreign {
        one: make(1),
        many: vec![make(20), make(30)],
        map: HashMap::new(),
        boxed: Box::new(make(400)),
        _caller: make(5000),
    };
    let vec = size_of::<Vec<u8>>();
    assert_eq!(computed_size_of(&value), 1 + 2 * vec + 50 + vec + 400);
    let full = Foreign { map: [(foreign::Key(1), make(7))].into(), ..value };
    let table = computed_size_of(&HashMap::from([(1_u8, [0_u64; 3])]));
    assert_eq!(computed_size_of(&full), 1 + 2 * vec + 50 + vec + 400 + table + 7);
}

struct NotMeasurable;

#[derive(MallocSizeOf)]
struct Bounds<T, U, V> {
    measured: Vec<T>,
    #[malloc_size_of(ignore = "not ours")]
    _ignored: Option<U>,
    _phantom: PhantomData<V>,
}

trait Owner {
    type Owned;
}

impl Owner for NotMeasurable {
    type Owned = String;
}

#[derive(MallocSizeOf)]
#[malloc_size_of(bound = "O::Owned: MallocSizeOf")]
struct Chosen<O: Owner> {
    owned: Vec<O::Owned>,
}

#[derive(MallocSizeOf)]
struct Tail<T: ?Sized> {
    head: String,
    tail: T,
}

#[test]
fn bounds_are_those_of_measured_parameters() {
    let value: Bounds<String, NotMeasurable, NotMeasurable> =
        Bounds { measured: vec![text(9)], _ignored: None, _phantom: PhantomData };
    assert_eq!(computed_size_of(&value), TEXT + 9);
    assert_eq!(computed_size_of(&Chosen::<NotMeasurable> { owned: vec![text(4)] }), TEXT + 4);
    let unsized_tail: Box<Tail<[String]>> = Box::new(Tail { head: text(2), tail: [text(3), text(4)] });
    assert_eq!(computed_size_of(&unsized_tail), 3 * TEXT + 9);
}

#[allow(non_snake_case, non_camel_case_types, reason = "users may write such code")]
mod awkward {
    use super::*;
    mod renamed {
        pub(crate) use memory_reporter as reporter;
    }

    #[derive(MallocSizeOf)]
    #[malloc_size_of(crate = renamed::reporter)]
    pub(super) struct Names<R, T> {
        pub(super) ops: R,
        pub(super) R: T,
        pub(super) __ops: String,
        pub(super) r#type: String,
    }

    #[derive(MallocSizeOf)]
    #[repr(C, packed)]
    pub(super) struct Packed {
        pub(super) small: u8,
        pub(super) large: u64,
    }
}

#[test]
fn awkward_names_and_packed_structs() {
    let value = awkward::Names { ops: text(1), R: text(2), __ops: text(3), r#type: text(4) };
    assert_eq!(computed_size_of(&value), 10);
    let packed = awkward::Packed { small: 1, large: 2 };
    assert_eq!(computed_size_of(&packed), 0);
    assert_eq!(u64::from(packed.small) + packed.large, 3);
}

trait Animal: memory_reporter::measure::ErasedMallocSizeOf {}
malloc_size_of_dyn!(Animal);
impl Animal for Named {}
impl Animal for Tuple {}

#[test]
fn dyn_values() {
    let animals: Vec<Box<dyn Animal + Send>> = vec![
        Box::new(Named { title: text(5), count: 1, words: vec![] }),
        Box::new(Tuple(text(6), 0, Box::new(1))),
    ];
    let boxes = 2 * size_of::<Box<dyn Animal>>() + size_of::<Named>() + size_of::<Tuple>();
    assert_eq!(computed_size_of(&animals), boxes + 5 + 6 + 8);
}

#[test]
fn including_this_is_the_block_and_what_it_holds() {
    let boxed = Box::new(Tuple(text(6), 0, Box::new(1)));
    let mut ops = MallocSizeOfOps::computed();
    assert_eq!(boxed.size_of_including_this(&mut ops), size_of::<Tuple>() + 6 + 8);
    assert_eq!(boxed.size_of_excluding_this(&mut ops), boxed.size_of_including_this(&mut ops));
}

/// A custom reading that keeps a list of its calls.
#[derive(Default)]
struct Names {
    told: Vec<String>,
    depth: usize,
    state: WalkState,
}

impl SealedReading for Names {}

#[allow(unsafe_code, reason = "the trait's method is unsafe; this one reads no pointer")]
impl WalkObserver for Names {
    unsafe fn block(&mut self, block: WalkedBlock) -> usize {
        self.told.push(format!("{}{} B", "  ".repeat(self.depth), block.layout.size()));
        block.layout.size()
    }

    fn state(&mut self) -> &mut WalkState {
        &mut self.state
    }

    fn enter(&mut self, edge: Edge, type_name: fn() -> &'static str) {
        let short = type_name().replace("alloc::string::", "").replace("alloc::vec::", "");
        self.told.push(format!("{}{edge:?}: {short}", "  ".repeat(self.depth)));
        self.depth += 1;
    }

    fn leave(&mut self) {
        self.depth -= 1;
    }
}

impl Reading for Names {
    const NAMES: bool = true;

    fn erase(&mut self) -> &mut dyn WalkObserver {
        self
    }
}

#[test]
fn fields_and_types_are_named_for_readings_that_listen() {
    let named = Named { title: text(5), count: 1, words: vec![text(7)] };
    let mut ops = MallocSizeOfOps::new(Names::default());
    assert_eq!(named.size_of_excluding_this(&mut ops), 5 + TEXT + 7);
    let expected = [
        "Field(\"title\"): String",
        "  5 B",
        "Field(\"count\"): u32",
        "Field(\"words\"): Vec<String>",
        "  24 B",
        "  Element: String",
        "    7 B",
    ];
    assert_eq!(ops.into_reading().told, expected);
    // The reading gets the same calls for a value behind `dyn`.
    let boxed: Box<dyn Animal> = Box::new(named);
    let mut ops = MallocSizeOfOps::new(Names::default());
    boxed.size_of_excluding_this(&mut ops);
    assert_eq!(ops.into_reading().told[1..], expected);
}

/// A custom reading that counts its calls.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    parts: usize,
    merged: u64,
    opened: usize,
    pointers: usize,
    shared: usize,
}

#[derive(Default)]
struct ListenGuard<const NAMES: bool, const STEPS: bool, const MERGES: bool> {
    told: Told,
    state: WalkState,
}

impl<const NAMES: bool, const STEPS: bool, const MERGES: bool> SealedReading
    for ListenGuard<NAMES, STEPS, MERGES>
{
}

#[allow(unsafe_code, reason = "the trait's method is unsafe; this one reads no pointer")]
impl<const NAMES: bool, const STEPS: bool, const MERGES: bool> WalkObserver
    for ListenGuard<NAMES, STEPS, MERGES>
{
    unsafe fn block(&mut self, block: WalkedBlock) -> usize {
        block.layout.size()
    }

    fn state(&mut self) -> &mut WalkState {
        &mut self.state
    }

    fn enter(&mut self, _: Edge, _: fn() -> &'static str) {
        self.told.parts += 1;
    }

    fn merged(&mut self, parts: u64) {
        self.told.merged += parts;
    }

    fn open_block(&mut self) {
        self.told.opened += 1;
    }

    fn pointer(&mut self, _: usize) {
        self.told.pointers += 1;
    }

    fn shared(&mut self, _: usize, _: bool) {
        self.told.shared += 1;
    }
}

impl<const NAMES: bool, const STEPS: bool, const MERGES: bool> Reading for ListenGuard<NAMES, STEPS, MERGES> {
    const NAMES: bool = NAMES;
    const STEPS: bool = STEPS;
    const MERGES: bool = MERGES;

    fn erase(&mut self) -> &mut dyn WalkObserver {
        self
    }
}

#[derive(MallocSizeOf)]
struct Mixed {
    bytes: Vec<u8>,
    texts: Vec<String>,
    count: u32,
    reference: &'static str,
    shared: Rc<u8>,
}

impl Animal for Mixed {}

fn mixed() -> Mixed {
    Mixed { bytes: vec![0; 1000], texts: vec![text(1); 10], count: 1, reference: "", shared: Rc::new(1) }
}

/// Asserts that a reading gets the same calls for a value itself, for the value behind one and behind two `dyn`
/// pointers, and for the value in a closure.
#[track_caller]
fn told_alike<const NAMES: bool, const STEPS: bool, const MERGES: bool>(expected: &Told) {
    type Ops<const N: bool, const S: bool, const M: bool> = MallocSizeOfOps<ListenGuard<N, S, M>>;
    let walked = |walk: &dyn Fn(&mut Ops<NAMES, STEPS, MERGES>) -> usize| {
        let mut ops = MallocSizeOfOps::new(ListenGuard::default());
        let bytes = walk(&mut ops);
        (bytes, ops.into_reading().told)
    };
    let value = mixed();
    let (bytes, told) = walked(&|ops| value.size_of_excluding_this(ops));
    assert_eq!(&told, expected);
    let erased: &dyn Animal = &value;
    assert_eq!(walked(&|ops| erased.size_of_excluding_this(ops)), (bytes, told));
    let twice: (bool, &dyn Animal) = (true, &Boxed(Box::new(mixed())));
    let (more, told) = walked(&|ops| twice.1.size_of_excluding_this(ops));
    assert_eq!(more, bytes + size_of::<Mixed>());
    let steps = usize::from(STEPS);
    let Told { parts, opened, merged, pointers, shared } = told;
    let inner = Told { parts: parts - steps, opened: opened - steps, merged, pointers, shared };
    assert_eq!(&inner, expected);
    let (same, told) = walked(&|ops| ops.erased(|ops| mixed().size_of_excluding_this(ops)));
    assert_eq!((same, &told), (bytes, expected));
}

#[derive(MallocSizeOf)]
struct Boxed(Box<dyn Animal>);

impl Animal for Boxed {}

#[test]
fn below_dyn_a_reading_is_told_what_it_wants_and_no_more() {
    told_alike::<false, false, false>(&Told::default());
    // `parts` counts the fields that can own heap memory, and the texts. `opened` counts the blocks of the list of
    // texts and of the `Rc`.
    let (parts, opened) = (3 + 10, 2);
    told_alike::<false, true, false>(&Told { parts, opened, ..Told::default() });
    told_alike::<false, true, true>(&Told { parts: 3 + 1, merged: 10, opened, ..Told::default() });
    let all = Told { parts: 5 + 1000 + 10, merged: 0, opened: 3, pointers: 1, shared: 1 };
    told_alike::<true, true, false>(&all);
    told_alike::<true, true, true>(&Told { parts: 5 + 2, merged: 1010, ..all });
}

/// Uses the derive under lints that a user's crate may forbid. To `allow` a forbidden lint is an error, so the derived
/// code must not `allow` these lints.
#[forbid(unsafe_code, warnings, deprecated, unused_qualifications, unused_variables)]
#[forbid(clippy::pedantic, clippy::arithmetic_side_effects, clippy::allow_attributes)]
#[forbid(clippy::trait_duplication_in_bounds, clippy::type_repetition_in_bounds, clippy::use_self)]
mod strict {
    use memory_reporter::MallocSizeOf;

    #[derive(MallocSizeOf)]
    #[repr(C, packed)]
    pub(super) struct Packed<T: Copy, U>(pub(super) T, pub(super) U)
    where
        U: Copy + MallocSizeOf;

    #[derive(MallocSizeOf)]
    pub(super) struct Bound<T: MallocSizeOf>(pub(super) T);

    #[derive(MallocSizeOf)]
    pub(super) struct Page {
        pub(super) words: Vec<String>,
        #[deprecated]
        pub(super) letters: String,
        pub(super) count: u32,
    }

    #[derive(MallocSizeOf)]
    pub(super) enum Part {
        #[deprecated]
        Words(String, String),
        Break,
    }

    #[deprecated]
    #[derive(MallocSizeOf)]
    pub(super) struct Old<T>(pub(super) T);
}

#[test]
fn nothing_meets_the_lints_of_the_user() {
    #[allow(deprecated, reason = "to be measured")]
    let page = strict::Page { words: vec![], letters: text(3), count: 1 };
    assert_eq!(computed_size_of(&page) + page.words.len() + page.count as usize, 4);
    #[allow(deprecated, reason = "to be measured")]
    let words = strict::Part::Words(text(1), text(2));
    assert_eq!(computed_size_of(&[words, strict::Part::Break]), 3);
    #[allow(deprecated, reason = "to be measured")]
    let old = strict::Old(text(4));
    assert_eq!(computed_size_of(&old), 4);
    let packed = strict::Packed(1_u8, 2_u64);
    assert_eq!((computed_size_of(&packed), packed.0, { packed.1 }), (0, 1, 2));
    assert_eq!(computed_size_of(&strict::Bound(text(5))), 5);
}

/// The caller of this macro passes the types as tokens. The tokens keep the caller's hygiene.
macro_rules! page {
    ($name:ident, $field:ident: $($type:tt)*) => {
        #[derive(MallocSizeOf)]
        struct $name {
            $field: $($type)*,
            count: u32,
        }
    };
}
page!(Book, pages: Vec<String>);

#[test]
fn types_written_by_macros() {
    let book = Book { pages: vec![text(3)], count: 1 };
    assert_eq!(computed_size_of(&book) + book.count as usize, TEXT + 3 + 1);
}

#[allow(non_camel_case_types, dead_code, reason = "users may write such code")]
mod shadowed {
    use super::*;
    struct usize;
    struct bool;

    #[derive(MallocSizeOf)]
    pub(super) struct Fresh<__R>(pub(super) __R);
}

#[derive(MallocSizeOf)]
struct Borrows<'a, T, I: Iterator> {
    borrowed: &'a T,
    make: fn() -> T,
    items: Vec<I::Item>,
}

#[derive(MallocSizeOf)]
#[repr(C, packed)]
struct PackedPair<T>(u8, T);

#[test]
fn only_what_is_owned_is_bound() {
    assert_eq!(computed_size_of(&shadowed::Fresh(text(5))), 5);
    let value: Borrows<'_, NotMeasurable, std::iter::Empty<String>> =
        Borrows { borrowed: &NotMeasurable, make: || NotMeasurable, items: vec![text(6)] };
    assert_eq!(computed_size_of(&value), TEXT + 6);
    let _ = (value.borrowed, value.make);
    let packed = PackedPair(1, 2_u64);
    assert_eq!((computed_size_of(&packed), packed.0, { packed.1 }), (0, 1, 2));
}

#[derive(MallocSizeOf)]
#[allow(clippy::type_complexity, reason = "users may write such code")]
struct Pointers<T, U> {
    next: Option<NonNull<T>>,
    atomic: AtomicPtr<T>,
    raw: Cell<[*const T; 2]>,
    parent: RefCell<(sync::Weak<T>, rc::Weak<T>)>,
    marker: Option<PhantomData<T>>,
    closure: Box<dyn Fn(T) -> T>,
    functions: [Option<fn(T) -> T>; 2],
    owned: Vec<U>,
}

#[test]
fn pointers_bind_nothing() {
    let value: Pointers<NotMeasurable, String> = Pointers {
        next: None,
        atomic: AtomicPtr::default(),
        raw: Cell::new([std::ptr::null(); 2]),
        parent: RefCell::default(),
        marker: None,
        closure: Box::new(|it| it),
        functions: [None, Some(|it| it)],
        owned: vec![text(7)],
    };
    assert_eq!(computed_size_of(&value), TEXT + 7);
    assert!(value.next.is_none() && value.marker.is_none() && value.functions[0].is_none());
    let _ = (value.atomic, value.raw, value.parent, value.closure);
}

/// Function pointers. They have more signatures than a list of impls can contain.
#[derive(MallocSizeOf)]
#[allow(clippy::type_complexity, reason = "users may write such code")]
struct Functions<T> {
    borrows: for<'a> fn(&'a T) -> &'a T,
    unsafe_mut: for<'a> unsafe fn(&'a mut T, u8) -> &'a mut T,
    of_c: for<'a> unsafe extern "C" fn(&'a T, *const u8, ...) -> Option<&'a T>,
    writes: fn(&T, &mut std::fmt::Formatter<'_>) -> std::fmt::Result,
    many: fn(&T, &T, &T, &T, &T, &T, &T, &T, &T, &T, &T, &T, &T) -> Vec<T>,
    maybe: Option<for<'a, 'b> fn(&'a [&'b T]) -> Option<&'a &'b T>>,
    pair: (fn(&T, &mut std::fmt::Formatter<'_>), [for<'a> fn(&'a &'a T) -> &'a T; 2]),
}

#[test]
fn functions_of_any_signature_are_measured() {
    const { assert!(!<Functions<NotMeasurable> as MallocSizeOf>::NEEDS_WALK) };
    // Rust code cannot define a function with a variable number of arguments.
    let _ = |of_c| Functions::<NotMeasurable> {
        borrows: |it| it,
        unsafe_mut: |it, _| it,
        of_c,
        writes: |_, _| Ok(()),
        many: |_, _, _, _, _, _, _, _, _, _, _, _, _| vec![],
        maybe: Some(|all| all.first()),
        pair: (|_, _| (), [|it| it; 2]),
    };
    // Inside of other types, functions with the listed signatures are measurable, too.
    fn measured<T: MallocSizeOf>(value: &T) -> usize {
        computed_size_of(value)
    }
    let table: Vec<for<'a> fn(&'a String) -> &'a str> = vec![|text| text];
    assert_eq!(measured(&table), 8);
    let table: Vec<for<'a> unsafe fn(&'a mut String, u8) -> Option<&'a mut u8>> = Vec::new();
    assert_eq!(measured(&table), 0);
    let closure: Box<dyn for<'a> Fn(&'a String) -> &'a str> = Box::new(|text| text);
    assert_eq!(measured(&vec![closure]), 16);
}

/// A type that contains itself through an associated type.
trait Family {
    type Member: MallocSizeOf;
}

#[derive(MallocSizeOf)]
#[malloc_size_of(bound = "")]
struct Parent<F: Family> {
    children: Vec<F::Member>,
}

struct Same;

impl Family for Same {
    type Member = Parent<Self>;
}

#[test]
fn recursion_through_an_associated_type() {
    let parent: Parent<Same> = Parent { children: vec![Parent { children: vec![] }] };
    assert_eq!(computed_size_of(&parent), size_of::<Parent<Same>>());
}

/// Types with the names of std's types. The type of each field has an impl, although a parameter of the type has none:
/// the derive must not require more.
mod with_names_of_std {
    use std::collections::BTreeMap;
    use std::marker::PhantomData;
    use std::pin::Pin;

    use memory_reporter::{MallocSizeOf, MallocSizeOfOps, Reading};

    #[derive(Default)]
    pub(crate) struct NoImpl;

    #[derive(MallocSizeOf, PartialEq, Eq, PartialOrd, Ord)]
    pub(crate) struct Key(u8);

    /// Hides from the derive that the argument of a `Pin` is a pointer.
    type Boxed = Box<u32>;

    pub(crate) trait Shape {}

    /// Owns no `T`.
    #[derive(Default)]
    pub(crate) struct Vec<T>(PhantomData<T>);

    impl<T> MallocSizeOf for Vec<T> {
        fn size_of_excluding_this<R: Reading>(&self, _: &mut MallocSizeOfOps<R>) -> usize {
            1
        }
    }

    pub(crate) trait Word {}

    impl Word for NoImpl {}

    /// A type whose parameter has a bound.
    #[derive(Default)]
    pub(crate) struct Mutex<T: Word>(PhantomData<T>);

    impl<T: Word> MallocSizeOf for Mutex<T> {
        fn size_of_excluding_this<R: Reading>(&self, _: &mut MallocSizeOfOps<R>) -> usize {
            2
        }
    }

    #[derive(Default)]
    pub(crate) struct HashMap<K, V>(PhantomData<(K, V)>);

    impl<K, V> MallocSizeOf for HashMap<K, V> {
        fn size_of_excluding_this<R: Reading>(&self, _: &mut MallocSizeOfOps<R>) -> usize {
            4
        }
    }

    impl MallocSizeOf for Box<dyn Shape> {
        fn size_of_excluding_this<R: Reading>(&self, _: &mut MallocSizeOfOps<R>) -> usize {
            8
        }
    }

    #[derive(Default, MallocSizeOf)]
    pub(crate) struct Fields {
        own: Vec<NoImpl>,
        nested: Option<Vec<Vec<NoImpl>>>,
        locked: (Mutex<NoImpl>, Vec<NoImpl>),
        map: HashMap<NoImpl, Vec<NoImpl>>,
        boxed: Option<Box<dyn Shape>>,
        pinned: BTreeMap<Key, Pin<Boxed>>,
        beside: BTreeMap<Key, Mutex<NoImpl>>,
        together: Option<(Mutex<NoImpl>, Key)>,
    }

    /// The bound is on the whole field, and not on its parts.
    #[derive(MallocSizeOf)]
    #[malloc_size_of(bound = "(Option<T>, Box<dyn Fn(T)>): MallocSizeOf")]
    pub(crate) struct WholeBound<T>(pub(crate) (Option<T>, Box<dyn Fn(T)>));
}

#[test]
fn a_field_with_an_impl_compiles_whatever_its_parts_are() {
    use with_names_of_std::{Fields, WholeBound};

    assert_eq!(computed_size_of(&Fields::default()), 1 + 2 + 1 + 4);
    assert_eq!(computed_size_of(&WholeBound::<Box<u32>>((Some(Box::new(1)), Box::new(|_| {})))), 4);
}
