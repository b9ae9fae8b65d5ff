//! Types that own no heap.

use core::marker::{PhantomData, PhantomPinned};
use core::sync::atomic;
use core::{alloc, any, cmp, convert, hash, mem, net, num, ops, ptr, time};

use crate::malloc_size_of::MallocSizeOf;
use crate::ops::MallocSizeOfOps;
use crate::reading::Reading;

macro_rules! plain {
    ($([$($generics:tt)*] $type:ty),* $(,)?) => {$(
        impl<$($generics)*> MallocSizeOf for $type {
            const NEEDS_WALK: bool = false;

            #[inline]
            fn size_of_excluding_this<R: Reading>(&self, _: &mut MallocSizeOfOps<R>) -> usize {
                0
            }
        }
    )*};
}

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
plain!([] ops::RangeFull, [] cmp::Ordering, [] convert::Infallible, [] alloc::Layout, [] atomic::Ordering);
plain!([H] hash::BuildHasherDefault<H>, [] std::hash::RandomState, [] std::hash::DefaultHasher);
plain!([] time::Duration, [] std::time::Instant, [] std::time::SystemTime);
plain!(
    [] net::IpAddr, [] net::Ipv4Addr, [] net::Ipv6Addr, [] net::SocketAddr, [] net::SocketAddrV4,
    [] net::SocketAddrV6,
);
plain!([] std::thread::ThreadId, [] std::fs::File, [] std::ffi::OsStr, [] std::path::Path, [] core::ffi::CStr);
plain!([] std::net::TcpStream, [] std::net::TcpListener, [] std::net::UdpSocket);
plain!([] std::sync::Once, [] std::process::ExitStatus);
// Pointers that own nothing: what they point to is counted where it is owned.
plain!([T: ?Sized] &T, [T: ?Sized] *const T, [T: ?Sized] *mut T, [T: ?Sized] ptr::NonNull<T>);

macro_rules! functions {
    ($($argument:ident)*) => {
        plain!([Ret, $($argument),*] fn($($argument),*) -> Ret);
        plain!([Ret, $($argument),*] unsafe fn($($argument),*) -> Ret);
        plain!([Ret, $($argument),*] extern "C" fn($($argument),*) -> Ret);
        plain!([Ret, $($argument),*] unsafe extern "C" fn($($argument),*) -> Ret);
    };
}
functions!();
functions!(A);
functions!(A B);
functions!(A B C);
functions!(A B C D);
functions!(A B C D E);
functions!(A B C D E F);
functions!(A B C D E F G);
functions!(A B C D E F G H);
