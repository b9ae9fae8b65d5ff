//! Types that own no heap.

use core::marker::{PhantomData, PhantomPinned};
use core::sync::atomic;
use core::{alloc, any, cmp, convert, hash, mem, net, num, ops, panic, ptr, time};

/// Implements `MallocSizeOf` for types that own no heap.
macro_rules! plain {
    ($([$($generics:tt)*] $type:ty),* $(,)?) => {$(
        impl<$($generics)*> $crate::MallocSizeOf for $type {
            const NEEDS_WALK: bool = false;

            #[inline]
            fn size_of_excluding_this<R: $crate::Reading>(
                &self,
                _: &mut $crate::MallocSizeOfOps<R>,
            ) -> usize {
                0
            }
        }
    )*};
}

pub(crate) use plain;

plain!([] bool, [] char, [] str, [] (), [] f32, [] f64);
plain!([] u8, [] u16, [] u32, [] u64, [] u128, [] usize, [] i8, [] i16, [] i32, [] i64, [] i128, [] isize);
plain!(
    [] num::NonZeroU8, [] num::NonZeroU16, [] num::NonZeroU32, [] num::NonZeroU64, [] num::NonZeroU128,
    [] num::NonZeroUsize, [] num::NonZeroI8, [] num::NonZeroI16, [] num::NonZeroI32, [] num::NonZeroI64,
    [] num::NonZeroI128, [] num::NonZeroIsize,
);
plain!(
    [] atomic::AtomicBool, [] atomic::AtomicU8, [] atomic::AtomicU16, [] atomic::AtomicU32,
    [] atomic::AtomicU64, [] atomic::AtomicUsize, [] atomic::AtomicI8, [] atomic::AtomicI16,
    [] atomic::AtomicI32, [] atomic::AtomicI64, [] atomic::AtomicIsize, [T] atomic::AtomicPtr<T>,
);
plain!([T: ?Sized] PhantomData<T>, [] PhantomPinned, [T] mem::Discriminant<T>, [] any::TypeId);
plain!([] num::FpCategory, [] num::ParseIntError, [] num::ParseFloatError, [] num::IntErrorKind);
plain!([] ops::RangeFull, [] cmp::Ordering, [] convert::Infallible, [] alloc::Layout, [] atomic::Ordering);
plain!([H] hash::BuildHasherDefault<H>, [] std::hash::RandomState, [] std::hash::DefaultHasher);
plain!([] time::Duration, [] std::time::Instant, [] std::time::SystemTime);
plain!(
    [] net::IpAddr, [] net::Ipv4Addr, [] net::Ipv6Addr, [] net::SocketAddr, [] net::SocketAddrV4,
    [] net::SocketAddrV6,
);
plain!([] std::ffi::OsStr, [] std::path::Path, [] core::ffi::CStr, [] core::str::Utf8Error, [] core::fmt::Error);
plain!([] panic::Location<'_>, [] core::ffi::c_void);
// Iterators over borrowed elements own no heap.
plain!(
    [T] core::slice::Iter<'_, T>, [T] core::slice::IterMut<'_, T>, [] core::str::Chars<'_>,
    [] core::str::CharIndices<'_>, [] core::str::Bytes<'_>, [] core::str::Lines<'_>, [] core::str::SplitWhitespace<'_>,
);
// Pointers that do not own their target. The target's owner counts it.
plain!([T: ?Sized] *const T, [T: ?Sized] *mut T, [T: ?Sized] ptr::NonNull<T>);
