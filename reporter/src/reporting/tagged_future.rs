//! Polls a future under a tag.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use super::path_tags::TaggedFuture;

#[allow(unsafe_code, reason = "projects a pin to a field")]
impl<F: Future> Future for TaggedFuture<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let _tag = self.tag.enter();
        // SAFETY: `TaggedFuture` has no destructor and does not move its future while it is pinned. It is `Unpin`
        // only if the future is `Unpin`, since the compiler derives `Unpin` from the fields.
        let future = unsafe { self.map_unchecked_mut(|tagged| &mut tagged.future) };
        future.poll(context)
    }
}
