//! A replacement for dashmap's `raw-api`, for programs that do not enable that feature.
//!
//! This crate does not enable the feature either, since a feature applies to the whole program. Method resolution
//! detects the feature. With `raw-api`, the method `shards` of `DashMap` is public and takes precedence over
//! [`WithoutRawApi::shards`]. Without `raw-api`, only the trait's method is visible. It returns an empty slice. The
//! element type has the methods that the parent module calls, and no value of this type exists.

use core::alloc::Layout;
use core::convert::Infallible;
use core::marker::PhantomData;
use core::ptr::NonNull;

use dashmap::DashMap;

/// Provides a method `shards` for a `DashMap` without `raw-api`. The method returns an empty slice.
pub(super) trait WithoutRawApi<K, V> {
    fn shards(&self) -> &[HiddenShard<K, V>] {
        &[]
    }
}

impl<K, V, S> WithoutRawApi<K, V> for DashMap<K, V, S> {}

/// Replaces a shard, the guard of a shard, and the table in it. No value of this type exists.
pub(super) struct HiddenShard<K, V>(Infallible, PhantomData<(K, V)>);

impl<K, V> HiddenShard<K, V> {
    pub(super) fn try_read(&self) -> Option<&Self> {
        match self.0 {}
    }

    pub(super) fn allocation_info(&self) -> (NonNull<u8>, Layout) {
        match self.0 {}
    }

    #[allow(
        unsafe_code,
        clippy::missing_safety_doc,
        reason = "has the signature of the table's method, and is never called"
    )]
    pub(super) unsafe fn iter(&self) -> core::iter::Empty<HiddenEntry<K, V>> {
        match self.0 {}
    }
}

pub(super) struct HiddenEntry<K, V>(Infallible, PhantomData<(K, V)>);

impl<K, V> HiddenEntry<K, V> {
    #[allow(
        unsafe_code,
        clippy::missing_safety_doc,
        reason = "has the signature of the bucket's method, and is never called"
    )]
    pub(super) unsafe fn as_ref<'a>(&self) -> &'a (K, HiddenValue<V>) {
        match self.0 {}
    }
}

pub(super) struct HiddenValue<V>(Infallible, PhantomData<V>);

impl<V> HiddenValue<V> {
    pub(super) fn get(&self) -> &V {
        match self.0 {}
    }
}
