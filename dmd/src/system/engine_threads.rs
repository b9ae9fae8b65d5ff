//! Engine threads: threads of the engine's own that the C library does not count. So a program whose `main` ends its thread by
//! `pthread_exit` ends with its last thread, and a program with one thread stays one: the C library goes on without locks, and
//! calls that need a process with one thread succeed, since [`without`] ends all engine threads for the time of such a call.
//!
//! An engine thread has a stack and thread-locals of its own, in memory of the engine; the thread of the kernel only runs
//! there. Where an engine thread waits, it can leave its stack ([`pause_point`]) and end. Another thread of the kernel
//! continues it later, with the credentials of the thread that starts it: an engine thread never keeps rights that the program
//! has given up.
//!
//! While the program has one thread it takes no locks in the C library. So an engine thread must not call what takes such a
//! lock, or changes the C library's data: its heap, its streams, the loader. `libdmd.so` gives engine threads memory of its
//! own.
//!
//! Only `libdmd.so` has engine threads. Elsewhere, and if the loader cannot make thread-locals, threads of the engine are those
//! of the C library.

mod switch;
mod thread_locals;
mod wake_up;

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;
use std::fs::File;
use std::io::Read;

use switch::{GO_ON, WORDS, clone_onto, leave};
pub(crate) use wake_up::{prepare as prepare_descriptors, wait_for};

use crate::system::bell::Bell;
use crate::system::errno::keeping_errno;
use crate::system::slot::{ThreadSlot, slot, thread_pointer};
use crate::system::{clock, confined, memory, signals};

/// The code that an engine thread runs.
pub(crate) type ThreadBody = Box<dyn FnOnce() + Send>;

/// The destructor of a thread-local.
pub type Destructor = unsafe extern "C" fn(*mut c_void);

/// Engine threads at one time, at most.
const MOST: usize = 24;
/// Room for what an engine thread does, in debug builds too. Untouched pages take no memory.
const STACK: usize = 2 << 20;
const PAGE: usize = 4096;

/// As a thread of the C library, but without its counts.
const FLAGS: usize = (libc::CLONE_VM
    | libc::CLONE_FS
    | libc::CLONE_FILES
    | libc::CLONE_SIGHAND
    | libc::CLONE_THREAD
    | libc::CLONE_SYSVSEM
    | libc::CLONE_SETTLS
    | libc::CLONE_PARENT_SETTID) as usize;

/// How long a call waits for engine threads to end: one may write to a slow disk or pipe, or be in the middle of a dump. Then
/// the call is made, and the engine thread ends before it does anything else ([`pause_point`]): it never works with the rights
/// from before.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// A place for an engine thread.
struct EngineThread {
    state: AtomicU32,
    /// The kernel's number of the last thread, which the kernel writes before the thread runs; 0 once it is known to have
    /// ended.
    last: AtomicU32,
    /// The start of the memory; 0 before the first use. It stays for later engine threads.
    memory: AtomicUsize,
    thread_pointer: AtomicUsize,
    /// [`CALLS`] when its last thread started.
    calls: AtomicU32,
    stack_pointer: UnsafeCell<usize>,
    body: UnsafeCell<Option<ThreadBody>>,
    /// Destructors of its thread-locals, called before it ends.
    ends: UnsafeCell<Vec<(Destructor, *mut c_void)>>,
    name: AtomicPtr<CName>,
    /// Null if nobody rings for it.
    bell: AtomicPtr<Bell>,
}

/// A name is found by the address of a static pointer to it.
type CName = &'static CStr;

// SAFETY: only the engine thread, and the thread that starts it before it runs, reach the cells: `state` decides which.
unsafe impl Sync for EngineThread {}

const FREE: u32 = 0;
/// A thread makes it ready.
const STARTS: u32 = 1;
const RUNS: u32 = 2;
/// It has left its stack, or has not begun.
const PAUSED: u32 = 3;
/// Its work is done.
const ENDED: u32 = 4;
/// The system refuses to continue it, for good.
const LOST: u32 = 5;

static ENGINE_THREADS: [EngineThread; MOST] = [const {
    EngineThread {
        state: AtomicU32::new(FREE),
        last: AtomicU32::new(0),
        memory: AtomicUsize::new(0),
        thread_pointer: AtomicUsize::new(0),
        calls: AtomicU32::new(0),
        stack_pointer: UnsafeCell::new(0),
        body: UnsafeCell::new(None),
        ends: UnsafeCell::new(Vec::new()),
        name: AtomicPtr::new(core::ptr::null_mut()),
        bell: AtomicPtr::new(core::ptr::null_mut()),
    }
}; MOST];

/// The number of calls that want no engine threads now.
static PAUSES: AtomicU32 = AtomicU32::new(0);
/// The number of such calls so far.
static CALLS: AtomicU32 = AtomicU32::new(0);
/// A paused engine thread waits for a thread of the program to continue it: it has ended after a call that did not wait for it,
/// or the system had no room for a thread.
static ANY_WAITS: AtomicBool = AtomicBool::new(false);
/// When threads of the program last tried to continue engine threads, in nanoseconds.
static LAST_TRY: AtomicU64 = AtomicU64::new(0);
const BETWEEN_TRIES: Duration = Duration::from_millis(100);
/// The process that has the engine threads; 0 before [`prepare`].
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Lets this process have engine threads. Called at its start, while it has one thread.
pub(crate) fn prepare() {
    if OWNER.load(Ordering::Relaxed) == 0 {
        thread_locals::prepare();
        OWNER.store(std::process::id(), Ordering::Relaxed);
    }
}

/// Whether this process may have engine threads.
pub(crate) fn are_possible() -> bool {
    thread_locals::are_prepared()
}

/// Whether this thread is an engine thread.
#[inline(always)]
pub fn is_engine_thread() -> bool {
    slot().engine_thread.get() != 0
}

/// Starts an engine thread with a name for its thread. `bell` wakes it. False if there is no place or no memory, or the system
/// refuses.
pub(crate) fn start(name: &'static CName, bell: Option<&'static Bell>, body: ThreadBody) -> bool {
    if !are_possible() {
        return false;
    }
    let Some(number) = ENGINE_THREADS.iter().position(EngineThread::take) else { return false };
    let engine_thread = &ENGINE_THREADS[number];
    if !engine_thread.make(number, body) {
        engine_thread.state.store(FREE, Ordering::Release);
        return false;
    }
    engine_thread.name.store(core::ptr::from_ref(name).cast_mut(), Ordering::Relaxed);
    let bell = bell.map_or(core::ptr::null_mut(), |bell| core::ptr::from_ref(bell).cast_mut());
    engine_thread.bell.store(bell, Ordering::Relaxed);
    engine_thread.state.store(PAUSED, Ordering::SeqCst);
    // A call that wants no engine threads continues this one, too.
    PAUSES.load(Ordering::SeqCst) != 0
        || engine_thread.go_on()
        || engine_thread.state.load(Ordering::SeqCst) != LOST
}

impl EngineThread {
    /// Takes a place whose thread has ended.
    fn take(&self) -> bool {
        let take =
            |from| self.state.compare_exchange(from, STARTS, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        take(FREE) || (self.state.load(Ordering::Acquire) == ENDED && self.is_gone() && take(ENDED))
    }

    /// Makes the stack and the thread-locals. Only the thread that took the place calls this.
    fn make(&self, number: usize, body: ThreadBody) -> bool {
        let bytes = STACK + thread_locals::bytes().next_multiple_of(PAGE) + PAGE;
        let mut start = core::ptr::with_exposed_provenance_mut::<u8>(self.memory.load(Ordering::Relaxed));
        if start.is_null() {
            start = memory::map_for_dump(bytes);
            if start.is_null() {
                return false;
            }
            // The last page keeps the mapping apart from others.
            for page in [start, start.wrapping_add(bytes - PAGE)] {
                // SAFETY: a page of the mapping, which nothing uses yet.
                unsafe { libc::mprotect(page.cast(), PAGE, libc::PROT_NONE) };
            }
            self.memory.store(start.expose_provenance(), Ordering::Relaxed);
        }
        let end = start.wrapping_add(STACK);
        // SAFETY: the rest of the mapping, whose last thread has ended.
        let pointer = unsafe { thread_locals::copy_to(end) };
        self.thread_pointer.store(pointer, Ordering::Relaxed);
        let distance = core::ptr::from_ref(slot()).addr().wrapping_sub(thread_pointer());
        let slot = core::ptr::with_exposed_provenance::<ThreadSlot>(pointer.wrapping_add(distance));
        // SAFETY: the slot of the copy, which no thread uses yet.
        unsafe { &*slot }.engine_thread.set(number as u16 + 1);
        let words = end.cast::<usize>().wrapping_sub(WORDS);
        // SAFETY: words on the stack, which no thread uses yet.
        unsafe { words.write_bytes(0, WORDS) };
        // SAFETY: as above.
        unsafe { words.wrapping_add(GO_ON).write((run as *const ()).expose_provenance()) };
        // SAFETY: no thread runs in this place yet.
        unsafe { *self.stack_pointer.get() = words.expose_provenance() };
        // In the child of a fork both may be those of the parent's engine thread, half written: they are leaked, not dropped.
        // SAFETY: as above.
        unsafe { self.body.get().write(Some(body)) };
        // SAFETY: as above.
        unsafe { self.ends.get().write(Vec::new()) };
        true
    }

    /// Continues a paused engine thread. False if it is not paused, a call wants no engine threads, or the system refuses.
    fn go_on(&self) -> bool {
        let calls = loop {
            // Before the look at `PAUSES`: a call that begins later has a higher number.
            let calls = CALLS.load(Ordering::SeqCst);
            if self.state.compare_exchange(PAUSED, RUNS, Ordering::SeqCst, Ordering::Relaxed).is_err() {
                return false;
            }
            // A call that began meanwhile either sees that this engine thread runs, or is seen here.
            if PAUSES.load(Ordering::SeqCst) == 0 {
                break calls;
            }
            self.state.store(PAUSED, Ordering::SeqCst);
            // If that call has ended by now, it may have found the engine thread running.
            if PAUSES.load(Ordering::SeqCst) != 0 {
                return false;
            }
        };
        // The thread that left the stack may be ending still.
        while self.last.load(Ordering::SeqCst) != 0 && !self.has_ended() {
            std::thread::yield_now();
        }
        self.calls.store(calls, Ordering::SeqCst);
        let pointer = self.thread_pointer.load(Ordering::Relaxed);
        // SAFETY: the engine thread has left its stack, and its thread has ended.
        let stack = unsafe { *self.stack_pointer.get() };
        let mask = signals::block_all();
        // SAFETY: the last thread wrote the words to the stack and has ended, as the loop above made sure; `state` keeps
        // others out. The thread-locals are this engine thread's.
        let number = unsafe { clone_onto(FLAGS, stack, self.last.as_ptr(), pointer) };
        signals::set_mask(mask);
        let has_started = number >= 0;
        if let Some(bell) = self.bell() {
            bell.set_lost(!has_started);
        }
        if !has_started {
            let is_for_now = [libc::EAGAIN, libc::ENOMEM].contains(&(-number as c_int));
            self.state.store(if is_for_now { PAUSED } else { LOST }, Ordering::SeqCst);
            ANY_WAITS.fetch_or(is_for_now, Ordering::SeqCst);
        }
        has_started
    }

    /// Whether the place has no kernel thread, and gets none unless this process starts one.
    fn is_gone(&self) -> bool {
        match self.state.load(Ordering::SeqCst) {
            STARTS | RUNS => false,
            _ => self.has_ended(),
        }
    }

    /// Whether the last thread has ended.
    fn has_ended(&self) -> bool {
        let last = self.last.load(Ordering::SeqCst);
        if last == 0 {
            return true;
        }
        let has_ended = !is_there(last);
        if has_ended {
            let _ = self.last.compare_exchange(last, 0, Ordering::SeqCst, Ordering::Relaxed);
        }
        has_ended
    }

    fn bell(&self) -> Option<&'static Bell> {
        // SAFETY: null, or a static.
        unsafe { self.bell.load(Ordering::Relaxed).as_ref() }
    }
}

/// Whether this process has a thread of this number.
fn is_there(number: u32) -> bool {
    keeping_errno(|| {
        // SAFETY: the signal 0 only asks.
        unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), number, 0) == 0 }
    })
}

/// The first function of an engine thread.
extern "C" fn run() -> ! {
    if let Some(engine_thread) = here() {
        engine_thread.show_name();
        // SAFETY: this is the engine thread.
        if let Some(body) = unsafe { &mut *engine_thread.body.get() }.take() {
            body();
        }
        // SAFETY: this is the engine thread. The borrow ends before the call, which may add more.
        while let Some((destructor, object)) = unsafe { &mut *engine_thread.ends.get() }.pop() {
            // SAFETY: `at_end` got both together.
            unsafe { destructor(object) };
        }
    }
    end()
}

/// Has a destructor called when this engine thread ends: the C library would take a lock to note it.
pub fn at_end(destructor: Destructor, object: *mut c_void) {
    if let Some(engine_thread) = here() {
        // SAFETY: this is the engine thread, and nothing refers to the list.
        unsafe { &mut *engine_thread.ends.get() }.push((destructor, object));
    }
}

impl EngineThread {
    fn show_name(&self) {
        // SAFETY: null, or a static.
        if let Some(name) = unsafe { self.name.load(Ordering::Relaxed).as_ref() } {
            // SAFETY: names this thread, by a string that ends in 0.
            unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
        }
    }
}

fn here() -> Option<&'static EngineThread> {
    ENGINE_THREADS.get(usize::from(slot().engine_thread.get()).checked_sub(1)?)
}

/// Ends this engine thread.
pub(crate) fn end() -> ! {
    if let Some(engine_thread) = here() {
        engine_thread.state.store(ENDED, Ordering::SeqCst);
        // SAFETY: a place for the stack pointer, which only this thread uses: an ended engine thread is not continued.
        unsafe { leave(engine_thread.stack_pointer.get()) };
    }
    // SAFETY: ends this thread.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
    std::process::abort()
}

/// Where an engine thread waits, and holds no lock: if a call wants no engine threads, its thread ends here, and it continues
/// on another one after the call. So it does if it has missed a call.
pub(crate) fn pause_point() {
    let Some(engine_thread) = here() else { return };
    if PAUSES.load(Ordering::SeqCst) == 0
        && engine_thread.calls.load(Ordering::SeqCst) == CALLS.load(Ordering::SeqCst)
    {
        return;
    }
    engine_thread.state.store(PAUSED, Ordering::SeqCst);
    if PAUSES.load(Ordering::SeqCst) == 0 {
        // The call has ended, perhaps before it could find this engine thread paused.
        ANY_WAITS.store(true, Ordering::SeqCst);
    }
    // SAFETY: a place for the stack pointer. In the state PAUSED only `go_on` uses the stack, and it waits until this thread
    // has ended.
    unsafe { leave(engine_thread.stack_pointer.get()) };
    engine_thread.show_name();
}

/// On a thread of the program, which comes here now and then: continues engine threads that wait for that.
#[inline]
pub(crate) fn continue_waiting() {
    if ANY_WAITS.load(Ordering::Relaxed) {
        continue_now();
    }
}

#[cold]
fn continue_now() {
    if OWNER.load(Ordering::Relaxed) != std::process::id() || is_engine_thread() || confined::any_noted() {
        return;
    }
    let now = clock::nanoseconds();
    if now.saturating_sub(LAST_TRY.load(Ordering::Relaxed)) < BETWEEN_TRIES.as_nanos() as u64 {
        return;
    }
    LAST_TRY.store(now, Ordering::Relaxed);
    ANY_WAITS.store(false, Ordering::SeqCst);
    for engine_thread in &ENGINE_THREADS {
        engine_thread.go_on();
    }
}

/// Ends this engine thread if only engine threads are left: threads of the program that end by the system call alone leave
/// nobody who ends the process.
pub(crate) fn end_if_alone() {
    let mut text = [0; 1024];
    let read = File::open("/proc/self/stat").and_then(|mut file| file.read(&mut text)).unwrap_or(0);
    let text = &text[..read];
    // The name of the program, in parentheses, may contain anything.
    let Some(after) = text.iter().rposition(|byte| *byte == b')').and_then(|end| text.get(end + 2..)) else {
        return;
    };
    let mut fields = after.split(|byte| *byte == b' ');
    let first_has_ended = fields.next() == Some(b"Z");
    let threads = fields.nth(16).and_then(|field| str::from_utf8(field).ok()?.parse::<usize>().ok());
    let own = ENGINE_THREADS.iter().filter(|engine_thread| !engine_thread.is_gone()).count();
    if is_engine_thread() && first_has_ended && threads == Some(1 + own) {
        end();
    }
}

/// Runs a call of the program while there is no engine thread.
pub fn without<T>(call: impl FnOnce() -> T) -> T {
    // A child of `vfork` uses its parent's memory. A signal handler that interrupted the engine holds locks that engine threads
    // wait for. A filter of system calls may end the process for those below.
    let is_ours = OWNER.load(Ordering::Relaxed) == std::process::id();
    if !is_ours || slot().guard.is_set() || is_engine_thread() || confined::any_noted() {
        return call();
    }
    CALLS.fetch_add(1, Ordering::SeqCst);
    if PAUSES.fetch_add(1, Ordering::SeqCst) == 0 {
        wake_up::ring();
    }
    ENGINE_THREADS.iter().filter_map(EngineThread::bell).for_each(Bell::ring);
    wait_until_gone();
    let result = call();
    if PAUSES.fetch_sub(1, Ordering::SeqCst) == 1 {
        wake_up::stop_ringing();
        for engine_thread in &ENGINE_THREADS {
            engine_thread.go_on();
        }
    }
    result
}

fn none_runs() -> bool {
    ENGINE_THREADS.iter().all(EngineThread::is_gone)
}

fn wait_until_gone() {
    const YIELDS: u32 = 50;
    let start = clock::nanoseconds();
    let mut tries = 0;
    while !none_runs() {
        if clock::nanoseconds().saturating_sub(start) > LONGEST_WAIT.as_nanos() as u64 {
            return;
        }
        tries += 1;
        if tries < YIELDS {
            std::thread::yield_now();
        } else {
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}

/// For the child of a fork, which has no engine threads.
pub(crate) fn after_fork_in_child() {
    if OWNER.load(Ordering::Relaxed) == 0 {
        return;
    }
    OWNER.store(std::process::id(), Ordering::Relaxed);
    PAUSES.store(0, Ordering::SeqCst);
    ANY_WAITS.store(false, Ordering::SeqCst);
    for engine_thread in &ENGINE_THREADS {
        engine_thread.last.store(0, Ordering::SeqCst);
        engine_thread.state.store(FREE, Ordering::SeqCst);
    }
    wake_up::after_fork_in_child();
}
