//! Zeroed pages of the system that stay mapped, or until they are returned: the memory of the tables that the hooks use.

use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::platform::{return_pages, zeroed_pages};

/// A type for which zeroed memory is valid, and that threads may share.
///
/// # Safety
///
/// The type consists of atomic integers and pointers only.
#[allow(unsafe_code, reason = "an impl promises that zeroed memory is valid")]
pub(super) unsafe trait ZeroValid: 'static {}

/// Null, or a pointer to pages that were zeroed at first and stay mapped.
pub(super) struct KeptPages<T>(AtomicPtr<T>);

#[allow(unsafe_code, reason = "memory of the system")]
impl<T: ZeroValid> KeptPages<T> {
    pub(super) const fn none() -> Self {
        Self(AtomicPtr::new(null_mut()))
    }

    #[inline]
    pub(super) fn is_mapped(&self) -> bool {
        !self.0.load(Ordering::Relaxed).is_null()
    }

    #[inline]
    pub(super) fn get(&self) -> Option<&'static T> {
        // SAFETY: the pointer is null, or `get_or_map` has stored zeroed pages with room for a `T`. Zeros are a valid
        // `T`.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// Maps pages, unless another thread maps them first. Returns the pages, and whether this call mapped them. `None`
    /// if the system has no memory.
    pub(super) fn get_or_map(&self) -> Option<(&'static T, bool)> {
        let pages = zeroed_pages(size_of::<T>())?;
        let pointer = pages.cast().as_ptr();
        let is_new =
            self.0.compare_exchange(null_mut(), pointer, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if !is_new {
            // SAFETY: `zeroed_pages` has just returned these pages for this size, and no other thread has their
            // address.
            unsafe { return_pages(pages, size_of::<T>()) };
        }
        Some((self.get()?, is_new))
    }

    /// Returns the pages to the system.
    ///
    /// # Safety
    ///
    /// No code uses a reference to the pages any more.
    pub(super) unsafe fn return_to_system(&self) {
        if let Some(pages) = NonNull::new(self.0.swap(null_mut(), Ordering::AcqRel)) {
            // SAFETY: `get_or_map` mapped these pages for this size, and the caller guarantees that they are unused.
            unsafe { return_pages(pages.cast(), size_of::<T>()) };
        }
    }

    /// Inserts kept pages at the start of a linked list. `next` is the link inside these pages.
    pub(super) fn push(&self, pages: &'static T, next: &Self) {
        let this = core::ptr::from_ref(pages).cast_mut();
        let mut last = self.0.load(Ordering::Acquire);
        loop {
            next.0.store(last, Ordering::Relaxed);
            match self.0.compare_exchange(last, this, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(other) => last = other,
            }
        }
    }
}
