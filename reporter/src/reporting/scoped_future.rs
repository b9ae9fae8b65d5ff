//! Polls and drops a future in a scope.

use core::future::Future;
use core::mem::ManuallyDrop;
use core::pin::Pin;
use core::task::{Context, Poll};

use super::scopes::ScopedFuture;

#[allow(unsafe_code, reason = "projects a pin to a field")]
impl<F: Future> Future for ScopedFuture<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let _guard = self.scope.enter();
        // SAFETY: the future is not moved while it is pinned: its destructor drops it in place. `ScopedFuture` is
        // `Unpin` only if the future is, since the compiler derives `Unpin` from the fields.
        let future = unsafe { self.map_unchecked_mut(|scoped| &mut *scoped.future) };
        future.poll(context)
    }
}

#[allow(unsafe_code, reason = "drops a field in a scope")]
impl<F> Drop for ScopedFuture<F> {
    fn drop(&mut self) {
        let _guard = self.scope.enter();
        // SAFETY: only this destructor drops the field, in place, and no code uses the field afterwards.
        unsafe { ManuallyDrop::drop(&mut self.future) };
    }
}
