//! Pointers and options: the reporter is always accessible.

use core::any::type_name;
use core::ops::Deref;
use core::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use crate::reporting::{MemoryReporter, Reports};

macro_rules! pointers {
    ($([$($generics:tt)*] $type:ty;)*) => {$(
        /// Makes the reports of its target, with the target's name.
        impl<$($generics)*> MemoryReporter for $type {
            fn name(&self) -> &str {
                (**self).name()
            }

            fn collect_reports(&self, out: &mut Reports) {
                (**self).collect_reports(out);
            }
        }
    )*};
}
pointers!(
    [T: MemoryReporter + ?Sized] &T;
    [T: MemoryReporter + ?Sized] &mut T;
    [T: MemoryReporter + ?Sized] Box<T>;
    [T: MemoryReporter + ?Sized] Rc<T>;
    [T: MemoryReporter + ?Sized] Arc<T>;
    [P: Deref<Target: MemoryReporter>] Pin<P>;
);

/// Makes the reports of its value, if there is one.
impl<T: MemoryReporter> MemoryReporter for Option<T> {
    fn name(&self) -> &str {
        self.as_ref().map_or(type_name::<T>(), T::name)
    }

    fn collect_reports(&self, out: &mut Reports) {
        if let Some(value) = self {
            value.collect_reports(out);
        }
    }
}
