//! The macros, and the rules that read their arguments.

/// Asserts figures of a scope.
///
/// The first argument is a [`MeasuredScope`](crate::MeasuredScope) or a [`Scope`](crate::Scope). Each comparison is a
/// figure, one of `==`, `<`, `<=`, `>` and `>=`, and a number. Bytes may have a unit: `B`, `KiB`, `MiB` or `GiB`. An
/// expression in parentheses may replace the number.
///
/// | figure | meaning |
/// | --- | --- |
/// | `allocs`, `reallocs`, `frees` | blocks that the scope allocated, resized, and lost by frees on any thread |
/// | `bytes`, `usable` | all requested and all usable bytes; a reallocation counts with its new size |
/// | `peak` | the largest sum of requested bytes of live blocks |
/// | `retained_blocks`, `retained` | live blocks of the scope, and their requested bytes |
/// | `net` | `retained`, minus the bytes of older blocks that the scope freed; may be negative |
///
/// ```standalone_crate
/// use memory_heap_test::{Scope, assert_heap};
///
/// memory_heap_test::global_allocator!(std::alloc::System);
///
/// let lines = 3;
/// let (text, scope) = Scope::measure(|| vec!["line".to_owned(); lines]);
/// assert_heap!(scope, allocs == (1 + lines), peak <= 64 KiB, bytes < 1_000 B, retained_blocks == 4);
/// # drop(text);
/// ```
///
/// # Panics
///
/// Panics if a comparison is false: the message shows the figures and, with DMD, stacks. Also panics if the figures are
/// not exact, for example without a declared allocator: the message names the line to add.
#[macro_export]
macro_rules! assert_heap {
    ($scope:expr, $($checks:tt)+) => {
        $crate::__assert_heap!(($scope) [] $($checks)+)
    };
    ($scope:expr $(,)?) => {
        ::core::compile_error!("write what to compare, as in `assert_heap!(scope, allocs == 3, retained == 0)`")
    };
}

/// The rules of `assert_heap!`.
#[doc(hidden)]
#[macro_export]
macro_rules! __assert_heap {
    (($scope:expr) [$($done:expr,)+]) => {
        $crate::__private::check(&$scope, &[$($done),+])
    };
    (($scope:expr) [$($done:expr,)*] $figure:ident $comparison:tt $limit:literal $unit:ident $(, $($rest:tt)*)?) => {
        $crate::__assert_heap!(($scope) [$($done,)* $crate::__expectation!(
            $figure $comparison {
                const LIMIT: i128 = $limit;
                LIMIT * $crate::__unit!($figure $unit)
            }
        ),] $($($rest)*)?)
    };
    (($scope:expr) [$($done:expr,)*] $figure:ident $comparison:tt $limit:literal $(, $($rest:tt)*)?) => {
        $crate::__assert_heap!(($scope) [$($done,)* $crate::__expectation!(
            $figure $comparison {
                const LIMIT: i128 = $limit;
                LIMIT
            }
        ),] $($($rest)*)?)
    };
    (($scope:expr) [$($done:expr,)*] $figure:ident $comparison:tt ($limit:expr) $unit:ident $(, $($rest:tt)*)?) => {
        $crate::__assert_heap!(($scope) [$($done,)* $crate::__expectation!(
            $figure $comparison { $crate::__private::ToAmount::to_amount($limit) * $crate::__unit!($figure $unit) }
        ),] $($($rest)*)?)
    };
    (($scope:expr) [$($done:expr,)*] $figure:ident $comparison:tt ($limit:expr) $(, $($rest:tt)*)?) => {
        $crate::__assert_heap!(($scope) [$($done,)* $crate::__expectation!(
            $figure $comparison { $crate::__private::ToAmount::to_amount($limit) }
        ),] $($($rest)*)?)
    };
    (($scope:expr) [$($done:expr,)*] $($other:tt)*) => {
        ::core::compile_error!(::core::concat!(
            "a comparison is a figure, a sign and a number, as in `peak <= 64 KiB`; an expression needs parentheses; found `",
            ::core::stringify!($($other)*),
            "`"
        ))
    };
}

/// One comparison of `assert_heap!`.
#[doc(hidden)]
#[macro_export]
macro_rules! __expectation {
    ($figure:ident $comparison:tt $limit:block) => {
        $crate::__private::HeapExpectation {
            figure: $crate::__figure!($figure),
            comparison: $crate::__comparison!($comparison),
            limit: $limit,
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __figure {
    (allocs) => {
        $crate::__private::HeapFigure::Allocs
    };
    (reallocs) => {
        $crate::__private::HeapFigure::Reallocs
    };
    (frees) => {
        $crate::__private::HeapFigure::Frees
    };
    (bytes) => {
        $crate::__private::HeapFigure::Bytes
    };
    (usable) => {
        $crate::__private::HeapFigure::Usable
    };
    (peak) => {
        $crate::__private::HeapFigure::Peak
    };
    (retained_blocks) => {
        $crate::__private::HeapFigure::RetainedBlocks
    };
    (retained) => {
        $crate::__private::HeapFigure::Retained
    };
    (net) => {
        $crate::__private::HeapFigure::Net
    };
    ($other:ident) => {
        ::core::compile_error!(::core::concat!(
            "unknown figure `",
            ::core::stringify!($other),
            "`: use allocs, reallocs, frees, bytes, usable, peak, retained_blocks, retained or net"
        ))
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __comparison {
    (==) => {
        $crate::__private::Comparison::Equal
    };
    (<) => {
        $crate::__private::Comparison::Less
    };
    (<=) => {
        $crate::__private::Comparison::AtMost
    };
    (>) => {
        $crate::__private::Comparison::Greater
    };
    (>=) => {
        $crate::__private::Comparison::AtLeast
    };
    ($other:tt) => {
        ::core::compile_error!(::core::concat!(
            "unknown comparison `",
            ::core::stringify!($other),
            "`: use ==, <, <=, > or >="
        ))
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __unit {
    (allocs $unit:ident) => { $crate::__unit!(@blocks allocs $unit) };
    (reallocs $unit:ident) => { $crate::__unit!(@blocks reallocs $unit) };
    (frees $unit:ident) => { $crate::__unit!(@blocks frees $unit) };
    (retained_blocks $unit:ident) => { $crate::__unit!(@blocks retained_blocks $unit) };
    ($figure:ident B) => { 1 };
    ($figure:ident KiB) => { 1024 };
    ($figure:ident MiB) => { 1_048_576 };
    ($figure:ident GiB) => { 1_073_741_824 };
    ($figure:ident $other:ident) => {
        ::core::compile_error!(::core::concat!(
            "unknown unit `", ::core::stringify!($other), "`: use B, KiB, MiB or GiB"
        ))
    };
    (@blocks $figure:ident $unit:ident) => {
        ::core::compile_error!(::core::concat!(
            "`", ::core::stringify!($figure), "` is a number of blocks, so it has no unit: remove `",
            ::core::stringify!($unit), "`"
        ))
    };
}

/// Asserts that scopes did not grow since a baseline was written: a text file in the repository.
///
/// The path is relative to the folder of the package, and the scopes need names: see [`Scope::named`](crate::Scope::named).
/// A figure that is smaller than in the file passes. To write the file, or to update it, run the test with
/// `UPDATE_HEAP_BASELINE=1`; lines of other scopes stay. Each line has a figure, its number, and the name of a scope:
///
/// ```text
/// memory-heap-test 1
/// allocs 12 parse
/// reallocs 3 parse
/// bytes 5120 parse
/// peak 4096 parse
/// retained_blocks 1 parse
/// retained 24 parse
/// ```
///
/// ```no_run
/// use memory_heap_test::{Scope, assert_heap_baseline};
///
/// memory_heap_test::global_allocator!(std::alloc::System);
///
/// let parse = Scope::named("parse");
/// let text = parse.run(|| "a text".to_owned());
/// assert_heap_baseline!("tests/heap/parse.txt", parse);
/// # drop(text);
/// ```
///
/// # Panics
///
/// Panics if a figure is larger than in the file, if the file is missing or has a fault, or if the figures are not exact.
#[macro_export]
macro_rules! assert_heap_baseline {
    ($path:expr, $($scope:expr),+ $(,)?) => {
        $crate::__private::check_baseline(
            ::core::env!("CARGO_MANIFEST_DIR"),
            ::core::convert::AsRef::as_ref($path),
            &[$(&$scope),+],
        )
    };
    ($path:expr $(,)?) => {
        ::core::compile_error!("name the scopes, as in `assert_heap_baseline!(\"tests/heap/parse.txt\", scope)`")
    };
}

/// Asserts that a method returns the size of its value: `audit!(value, value.size())`.
///
/// The macro walks the value and compares its stated size with the walked size. With `audit!(value = make(),
/// value.size())`, it makes the value in a scope and also compares the allocated bytes: the size must contain ignored
/// fields, and whatever else `make()` leaves allocated. The value's type must derive
/// [`MallocSizeOf`](memory_reporter::MallocSizeOf).
///
/// ```standalone_crate
/// use memory_heap_test::audit;
/// use memory_reporter::MallocSizeOf;
///
/// memory_heap_test::global_allocator!(std::alloc::System);
///
/// #[derive(MallocSizeOf)]
/// struct Page(Vec<u64>);
///
/// impl Page {
///     fn size(&self) -> usize {
///         size_of::<Self>() + self.0.capacity() * 8
///     }
/// }
///
/// audit!(page = Page(vec![1; 100]), page.size());
/// ```
///
/// The stated size may include the value itself or not. A tolerance in percent is a third argument:
/// `audit!(page = make(), page.size(), within 10 %)`. See [`SizeAudit`](crate::SizeAudit) for the parts.
///
/// # Panics
///
/// Panics if the stated size differs: the message names the fields that are missing, or counted twice.
#[macro_export]
macro_rules! audit {
    ($value:ident = $make:expr, $size:expr $(, within $percent:literal %)? $(,)?) => {
        $crate::__private::check_audit(
            $crate::SizeAudit::measure_new(|| $make, |$value| $crate::__private::ToAmount::to_amount($size)),
            0 $(+ $percent)?,
        )
    };
    ($value:ident, $size:expr $(, within $percent:literal %)? $(,)?) => {
        $crate::__private::check_audit(
            $crate::SizeAudit::measure(&$value, |$value| $crate::__private::ToAmount::to_amount($size)),
            0 $(+ $percent)?,
        )
    };
}
