//! A stand-in for dashmap's `raw-api`, for programs that do not turn that feature on.
//!
//! This crate does not turn it on either, since a feature is on for the whole program. The compiler finds out what the
//! program has: with `raw-api` the method `shards` of `DashMap` is public and goes before [`WithoutRawApi::shards`]; without
//! it, only the trait's method can be called. That one returns types with the methods that the parent module calls, and
//! never a value of them.

use core::alloc::Layout;
use core::convert::Infallible;
use core::marker::PhantomData;
use core::ptr::NonNull;

use dashmap::DashMap;

/// The shards of a `DashMap` that does not show them: an empty slice.
pub(super) trait WithoutRawApi<K, V> {
    fn shards(&self) -> &[HiddenShard<K, V>] {
        &[]
    }
}

impl<K, V, S> WithoutRawApi<K, V> for DashMap<K, V, S> {}

/// The stand-in for a shard, and for all that a shard gives. There is no value of it.
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
