//! The part of the crate async-task that defines the layout of a task.

#![allow(dead_code, reason = "only the types and the blocks count")]

pub mod raw {
    use std::alloc::{Layout, alloc};
    use std::any::Any;
    use std::cell::UnsafeCell;
    use std::future::Future;
    use std::mem::offset_of;
    use std::pin::Pin;
    use std::ptr::NonNull;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Waker};

    type Panic = Box<dyn Any + Send + 'static>;

    pub struct Header<M> {
        state: AtomicUsize,
        awaiter: UnsafeCell<Option<Waker>>,
        metadata: M,
    }

    pub struct RawTask<F, T, S, M> {
        header: *const Header<M>,
        schedule: *const S,
        future: *mut F,
        output: *mut Result<T, Panic>,
    }

    impl<F, T, S, M> RawTask<F, T, S, M> {
        fn layout() -> (Layout, usize, usize) {
            let (of_future, of_output) = (Layout::new::<F>(), Layout::new::<Result<T, Panic>>());
            let size = of_future.size().max(of_output.size());
            let both =
                Layout::from_size_align(size, of_future.align().max(of_output.align())).expect("small");
            let (layout, schedule) = Layout::new::<Header<M>>().extend(Layout::new::<S>()).expect("small");
            let (layout, future) = layout.extend(both).expect("small");
            (layout, schedule, future)
        }

        #[inline(never)]
        pub fn allocate(future: F, schedule: S, metadata: M) -> NonNull<()> {
            let (layout, _, _) = Self::layout();
            // SAFETY: the layout's size is not 0.
            let place = NonNull::new(unsafe { alloc(layout) }.cast::<()>()).expect("memory");
            let raw = Self::from_place(place);
            let header = Header { state: AtomicUsize::new(1), awaiter: UnsafeCell::new(None), metadata };
            // SAFETY: the layout has room for each part.
            unsafe {
                raw.header.cast_mut().write(header);
                raw.schedule.cast_mut().write(schedule);
                raw.future.write(future);
            }
            place
        }

        fn from_place(place: NonNull<()>) -> Self {
            let (_, schedule, future) = Self::layout();
            let at = |offset: usize| place.as_ptr().cast::<u8>().wrapping_add(offset);
            Self {
                header: at(0).cast(),
                schedule: at(schedule).cast(),
                future: at(future).cast(),
                output: at(future).cast(),
            }
        }

        /// Cancels the task: its future is not needed any more.
        pub fn close(place: NonNull<()>) {
            let state = place.as_ptr().cast::<u8>().wrapping_add(offset_of!(Header<M>, state));
            // SAFETY: the header starts at this address, and contains the state.
            unsafe { &*state.cast::<AtomicUsize>() }.fetch_or(1 << 3, Ordering::SeqCst);
        }
    }

    impl<F: Future<Output = T>, T, S, M> RawTask<F, T, S, M> {
        pub fn poll(place: NonNull<()>, context: &mut Context<'_>) {
            let raw = Self::from_place(place);
            // SAFETY: the future is initialized and never moves.
            let future = unsafe { Pin::new_unchecked(&mut *raw.future) };
            assert!(future.poll(context).is_pending());
        }
    }
}
