//! Engine threads: the engine's own threads, which the C library does not count. So a program whose `main` ends its
//! thread by `pthread_exit` ends together with its last own thread. A program with one thread still has one thread for
//! the C library, which keeps working without locks. Calls that need a process with one thread succeed: [`without`]
//! ends all engine threads for the time of such a call.
//!
//! An engine thread has its own stack and thread-locals in memory of the engine, and a thread of the kernel runs on
//! them. At a [`pause_point`], an engine thread can leave its stack, and its kernel thread ends. Another thread of the
//! kernel continues the engine thread later. This new kernel thread has the credentials of the thread that starts it,
//! so an engine thread that has paused does not keep rights that the program has dropped.
//!
//! While the program has one thread, it takes no locks in the C library. So an engine thread must not call a function
//! that takes such a lock, or that changes data of the C library: its heap, its streams, the loader. `libdmd.so` gives
//! engine threads their own memory.
//!
//! Only `libdmd.so` has engine threads. In other programs, and if the loader cannot make thread-locals, the engine
//! uses threads of the C library.

mod switch;
mod thread_locals;
mod wake_up;

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;

use switch::{GO_ON, WORDS, clone_onto, leave};
pub(crate) use wake_up::{prepare as prepare_descriptors, wait_for};

use crate::system::bell::Bell;
use crate::system::errno::keeping_errno;
use crate::system::slot::{ThreadSlot, slot, thread_pointer};
use crate::system::{clock, confined, memory, raw_file, signals};

/// The code that an engine thread runs.
pub(crate) type ThreadBody = Box<dyn FnOnce() + Send>;

/// The destructor of a thread-local.
pub type Destructor = unsafe extern "C" fn(*mut c_void);

/// The maximum number of engine threads at one time.
const MOST: usize = 24;
/// The size of an engine thread's stack, also enough for debug builds. Untouched pages take no memory.
const STACK: usize = 2 << 20;
const PAGE: usize = 4096;

/// The flags with which the C library starts a thread, except `CLONE_CHILD_CLEARTID`.
const FLAGS: usize = (libc::CLONE_VM
    | libc::CLONE_FS
    | libc::CLONE_FILES
    | libc::CLONE_SIGHAND
    | libc::CLONE_THREAD
    | libc::CLONE_SYSVSEM
    | libc::CLONE_SETTLS
    | libc::CLONE_PARENT_SETTID) as usize;

/// The maximum time for which a call waits for engine threads to end: an engine thread may write to a slow disk or
/// pipe, or be in the middle of a dump. After that time the call is made, and the kernel thread ends at the next
/// [`pause_point`]. So the engine thread keeps the rights from before the call only until then.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The state of one engine thread.
struct EngineThread {
    state: AtomicU32,
    /// The kernel's number of the last kernel thread of this engine thread. The kernel writes the number before the
    /// kernel thread runs. The number is 0 when the kernel thread is known to have ended.
    last: AtomicU32,
    /// The start of the memory; 0 before the first use. Later engine threads use the same memory.
    memory: AtomicUsize,
    thread_pointer: AtomicUsize,
    /// The value of [`CALLS`] when the last kernel thread started.
    calls: AtomicU32,
    stack_pointer: UnsafeCell<usize>,
    body: UnsafeCell<Option<ThreadBody>>,
    /// Destructors of the thread-locals. They run before the engine thread ends.
    ends: UnsafeCell<Vec<(Destructor, *mut c_void)>>,
    name: AtomicPtr<CName>,
    /// The bell that wakes the engine thread; null if there is no bell.
    bell: AtomicPtr<Bell>,
}

/// The name of an engine thread. An entry contains the address of a static of this type.
type CName = &'static CStr;

// SAFETY: only the engine thread, and the thread that starts it before it runs, use the cells: `state` decides which
// of these two threads.
unsafe impl Sync for EngineThread {}

const FREE: u32 = 0;
/// A thread prepares the engine thread.
const STARTS: u32 = 1;
const RUNS: u32 = 2;
/// The engine thread has left its stack, or has not started.
const PAUSED: u32 = 3;
/// The engine thread has finished its work.
const ENDED: u32 = 4;
/// The system permanently refuses to continue the engine thread.
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

/// The number of current calls that need a process without engine threads.
static PAUSES: AtomicU32 = AtomicU32::new(0);
/// The number of calls so far that needed a process without engine threads.
static CALLS: AtomicU32 = AtomicU32::new(0);
/// Whether a thread of the program must continue a paused engine thread. This happens if the engine thread paused after
/// the end of a call that did not wait for it, or if the system had no room for a thread.
static ANY_WAITS: AtomicBool = AtomicBool::new(false);
/// The time, in nanoseconds, at which threads of the program last tried to continue engine threads.
static LAST_TRY: AtomicU64 = AtomicU64::new(0);
const BETWEEN_TRIES: Duration = Duration::from_millis(100);
/// The process to which the engine threads belong; 0 before [`prepare`].
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Lets this process have engine threads. Called once: at the start of the process, or by the first attachment.
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

/// The number of threads of the kernel that engine threads have now.
pub fn count() -> usize {
    ENGINE_THREADS.iter().filter(|engine_thread| !engine_thread.is_gone()).count()
}

/// Whether this thread is an engine thread.
#[inline(always)]
pub fn is_engine_thread() -> bool {
    slot().engine_thread.get() != 0
}

/// Starts an engine thread, and gives its kernel thread a name. `bell` wakes the engine thread. Returns false if there
/// is no free entry or no memory, or if the system refuses.
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
    // If a call needs a process without engine threads now, the call continues this engine thread when the call ends.
    PAUSES.load(Ordering::SeqCst) != 0
        || engine_thread.go_on()
        || engine_thread.state.load(Ordering::SeqCst) != LOST
}

impl EngineThread {
    /// Reserves a free entry, or an entry whose thread has ended. Returns false if the entry is in use.
    fn take(&self) -> bool {
        let take =
            |from| self.state.compare_exchange(from, STARTS, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        take(FREE) || (self.state.load(Ordering::Acquire) == ENDED && self.is_gone() && take(ENDED))
    }

    /// Makes the stack and the thread-locals. Only the thread that reserved the entry calls this.
    fn make(&self, number: usize, body: ThreadBody) -> bool {
        let bytes = STACK + thread_locals::bytes().next_multiple_of(PAGE) + PAGE;
        let mut start = core::ptr::with_exposed_provenance_mut::<u8>(self.memory.load(Ordering::Relaxed));
        if start.is_null() {
            start = memory::map_for_dump(bytes);
            if start.is_null() {
                return false;
            }
            // The first and the last page separate the mapping from other mappings.
            for page in [start, start.wrapping_add(bytes - PAGE)] {
                // SAFETY: the page is a part of the mapping, and no code uses it yet.
                unsafe { libc::mprotect(page.cast(), PAGE, libc::PROT_NONE) };
            }
            self.memory.store(start.expose_provenance(), Ordering::Relaxed);
        }
        let end = start.wrapping_add(STACK);
        // SAFETY: the mapping has room behind the stack, and the last thread in it has ended.
        let pointer = unsafe { thread_locals::copy_to(end) };
        self.thread_pointer.store(pointer, Ordering::Relaxed);
        let distance = core::ptr::from_ref(slot()).addr().wrapping_sub(thread_pointer());
        let slot = core::ptr::with_exposed_provenance::<ThreadSlot>(pointer.wrapping_add(distance));
        // SAFETY: the slot is a part of the copy, and no thread uses it yet.
        unsafe { &*slot }.engine_thread.set(number as u16 + 1);
        let words = end.cast::<usize>().wrapping_sub(WORDS);
        // SAFETY: the words are on the stack, and no thread uses them yet.
        unsafe { words.write_bytes(0, WORDS) };
        // SAFETY: as above.
        unsafe { words.wrapping_add(GO_ON).write((run as *const ()).expose_provenance()) };
        // SAFETY: no thread runs on this entry yet.
        unsafe { *self.stack_pointer.get() = words.expose_provenance() };
        // In the child of a fork, both values may belong to the parent's engine thread and be half written: they are
        // leaked, not dropped.
        // SAFETY: as above.
        unsafe { self.body.get().write(Some(body)) };
        // SAFETY: as above.
        unsafe { self.ends.get().write(Vec::new()) };
        true
    }

    /// Continues a paused engine thread. Returns false if the engine thread is not paused, if a call needs a process
    /// without engine threads, or if the system refuses.
    fn go_on(&self) -> bool {
        let calls = loop {
            // Read this before `PAUSES`: a call that starts later has a higher number.
            let calls = CALLS.load(Ordering::SeqCst);
            if self.state.compare_exchange(PAUSED, RUNS, Ordering::SeqCst, Ordering::Relaxed).is_err() {
                return false;
            }
            // If a call has started in the meantime, either the call finds this engine thread running, or this check
            // finds the call.
            if PAUSES.load(Ordering::SeqCst) == 0 {
                break calls;
            }
            self.state.store(PAUSED, Ordering::SeqCst);
            // If that call has ended already, it may have found the engine thread running, and did not continue it.
            if PAUSES.load(Ordering::SeqCst) != 0 {
                return false;
            }
        };
        // The thread that left the stack may still be ending.
        while self.last.load(Ordering::SeqCst) != 0 && !self.has_ended() {
            std::thread::yield_now();
        }
        self.calls.store(calls, Ordering::SeqCst);
        let pointer = self.thread_pointer.load(Ordering::Relaxed);
        // SAFETY: the engine thread has left its stack, and its thread has ended.
        let stack = unsafe { *self.stack_pointer.get() };
        let mask = signals::block_all();
        // SAFETY: the last thread wrote the words to the stack. It has ended, as the loop above made sure, and `state`
        // keeps other threads out. The thread-locals belong to this engine thread.
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

    /// Whether this engine thread has no kernel thread, and no thread is starting one.
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
        // SAFETY: the pointer is null or points to a static.
        unsafe { self.bell.load(Ordering::Relaxed).as_ref() }
    }
}

/// Whether this process has a thread with this number.
fn is_there(number: u32) -> bool {
    keeping_errno(|| {
        // SAFETY: the signal 0 only checks whether the thread exists.
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
        // SAFETY: this is the engine thread. The borrow ends before the call, which may add more destructors.
        while let Some((destructor, object)) = unsafe { &mut *engine_thread.ends.get() }.pop() {
            // SAFETY: `at_end` got both together.
            unsafe { destructor(object) };
        }
    }
    end()
}

/// Registers a destructor that runs when this engine thread ends: the C library would take a lock to register it.
pub fn at_end(destructor: Destructor, object: *mut c_void) {
    if let Some(engine_thread) = here() {
        // SAFETY: this is the engine thread, and no other reference to the list exists.
        unsafe { &mut *engine_thread.ends.get() }.push((destructor, object));
    }
}

impl EngineThread {
    fn show_name(&self) {
        // SAFETY: the pointer is null or points to a static.
        if let Some(name) = unsafe { self.name.load(Ordering::Relaxed).as_ref() } {
            // SAFETY: the call sets the name of this thread, and the name ends in 0.
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
        // SAFETY: the pointer is a valid place for the stack pointer. Only this thread uses it, since an ended engine
        // thread is not continued.
        unsafe { leave(engine_thread.stack_pointer.get()) };
    }
    // SAFETY: the call ends this thread.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
    std::process::abort()
}

/// A place where an engine thread may pause. The caller is an engine thread that waits and holds no lock. If a call
/// needs a process without engine threads, or if the engine thread has missed such a call, its kernel thread ends here.
/// After the call, the engine thread continues on another kernel thread.
pub(crate) fn pause_point() {
    let Some(engine_thread) = here() else { return };
    if PAUSES.load(Ordering::SeqCst) == 0
        && engine_thread.calls.load(Ordering::SeqCst) == CALLS.load(Ordering::SeqCst)
    {
        return;
    }
    engine_thread.state.store(PAUSED, Ordering::SeqCst);
    if PAUSES.load(Ordering::SeqCst) == 0 {
        // The call has ended, perhaps before it found this engine thread paused.
        ANY_WAITS.store(true, Ordering::SeqCst);
    }
    // SAFETY: the pointer is a valid place for the stack pointer. In the state `PAUSED`, only `go_on` uses the stack,
    // and it waits until this thread has ended.
    unsafe { leave(engine_thread.stack_pointer.get()) };
    engine_thread.show_name();
}

/// Continues paused engine threads if [`ANY_WAITS`] is set. Threads of the program call this from time to time.
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

/// Ends this engine thread if only engine threads are left. If all threads of the program end by the raw system call,
/// the process ends only when its engine threads end.
pub(crate) fn end_if_alone() {
    // First check the number of threads by the links of a folder, since this check needs no descriptor.
    let own = ENGINE_THREADS.iter().filter(|engine_thread| !engine_thread.is_gone()).count();
    if task_links() != Some(2 + 1 + own) {
        return;
    }
    let mut text = [0; 1024];
    let read = raw_file::read_start(c"/proc/self/stat", &mut text);
    let text = &text[..read];
    // The name of the program, in parentheses, may contain any characters.
    let Some(after) = text.iter().rposition(|byte| *byte == b')').and_then(|end| text.get(end + 2..)) else {
        return;
    };
    let mut fields = after.split(|byte| *byte == b' ');
    let first_has_ended = fields.next() == Some(b"Z");
    let threads = fields.nth(16).and_then(|field| str::from_utf8(field).ok()?.parse::<usize>().ok());
    if is_engine_thread() && first_has_ended && threads == Some(1 + own) {
        end();
    }
}

/// Returns the number of links of the process's folder of threads: 2 plus the number of threads. Makes the system call
/// itself, because `libdmd.so` replaces the functions of the C library that would return the number.
fn task_links() -> Option<usize> {
    let path = c"/proc/self/task".as_ptr();
    let mut folder = core::mem::MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: the path ends in 0, and `folder` is a place for the answer.
    let answer = unsafe {
        libc::syscall(libc::SYS_statx, libc::AT_FDCWD, path, 0, libc::STATX_NLINK, folder.as_mut_ptr())
    };
    // SAFETY: all bytes are initialized: zeros, or the answer.
    let folder = unsafe { folder.assume_init() };
    (answer == 0).then_some(folder.stx_nlink as usize)
}

/// Runs a call of the program while there are no engine threads.
pub fn without<T>(call: impl FnOnce() -> T) -> T {
    // In four cases the call runs without waiting. A child of `vfork` uses its parent's memory. A signal handler that
    // interrupted the engine may hold locks that engine threads wait for. An engine thread would wait for its own end.
    // If a filter of system calls is installed, the calls below may end the process.
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

/// Resets the state in the child of a fork: no engine thread runs there.
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
