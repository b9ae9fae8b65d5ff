//! The steps of attaching and detaching. Each step is a call in the process.

use core::time::Duration;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::time::Instant;

use crate::call::CallingThread;
use crate::copies;
use crate::error::AttachError;
use crate::keeper;
use crate::moment::{self, is_c_library, is_loader};
use crate::object::LoadedObject;
use crate::ptrace;
use crate::request::{AttachReply, AttachRequest, DetachReply, StaticAllocator};
use crate::stopped_process::{self, ChangeReport, PlannedChange};
use crate::target::{self, TargetProcess};

/// The longest wait for the calls, for the library's report, or for another `about-memory`.
const LONGEST: Duration = Duration::from_secs(10);

/// The bytes of the stack for the calls, with the room for texts at its start. `DMDRoom` in `libdmd.so` has as many.
const ROOM: u64 = 512 << 10;
const TEXT: u64 = 4096;
const REPLY: u64 = 8192;
/// The place in `DMDRoom` for the number of the process's filters of system calls at the attachment, plus 1.
const FILTERS: u64 = TEXT + REPLY;

/// Loads the library into a process, and starts to record.
///
/// # Errors
///
/// Returns an error if the process cannot be attached to: the process then continues as before. After
/// [`AttachError::Slow`], the calls in the process continue.
pub fn attach(process: u32, request: &AttachRequest<'_>) -> Result<AttachReply, AttachError> {
    let (target, _turn) = check_in_turn(process, request.despite_filter)?;
    let objects = objects(&target)?;
    check_program(&target, &objects)?;
    if !target::has_kernel_files(process) {
        return Err(AttachError::NoKernelFiles);
    }
    let wishes = wishes(request)?;
    let text = keeper::run(LONGEST, || as_text(attach_here(&target, &objects, request.library, &wishes)))?;
    let lines = ReplyLines::parse(&text)?;
    keep_filter_count(&target);
    let report = lines.number("report").map(|report| allocator_report(&target, report)).transpose()?;
    let report = report.unwrap_or_default();
    let moved = [lines.0, &report].into_iter().flat_map(|text| moved_functions(text, "moved "));
    let moved: Vec<_> = moved.collect();
    let copied = keeper::run(LONGEST, || replace_copies(&target, &moved, &report))?;
    let copied = ReplyLines::parse(&copied)?;
    let mut allocators = allocators(&report, copied.value("unchanged"));
    // The program's calls of its own function do not pass the loader.
    if objects.first().is_some_and(|program| program.function(&target, "malloc").is_some()) {
        allocators.push(StaticAllocator {
            name: "the program's own malloc".to_owned(),
            refusal: Some("calls inside of the program do not pass libdmd.so".to_owned()),
        });
    }
    let longest = [&lines, &copied].map(|lines| lines.number("stopped").unwrap_or(0)).into_iter().max();
    Ok(AttachReply {
        slots: lines.number("slots").unwrap_or(0),
        objects: lines.number("objects").unwrap_or(0),
        heap_before: lines.number("before"),
        allocators,
        copies: copied.number("copies").unwrap_or(0),
        stopped: Duration::from_nanos(longest.unwrap_or(0)),
    })
}

/// Keeps the number of filters for [`detach`].
fn keep_filter_count(target: &TargetProcess) {
    let room = objects(target).ok().and_then(|objects| library(target, &objects, "DMDRoom"));
    if let (Some(room), Some(count)) = (room, target.filter_count()) {
        // Without this number, `detach` does not look at filters.
        let _ = target.write(room + FILTERS, &(count + 1).to_le_bytes());
    }
}

/// Whether the process has installed a filter of system calls since the attachment.
fn filters_since_attachment(target: &TargetProcess, objects: &[LoadedObject]) -> bool {
    let before = library(target, objects, "DMDRoom").and_then(|room| target.word(room + FILTERS));
    let now = target.filter_count();
    before.zip(now).is_some_and(|(before, now)| before > 0 && now + 1 > before)
}

/// Replaces the copies of addresses. If code has to change for the program's own allocators, all threads are stopped at
/// the same time.
fn replace_copies(target: &TargetProcess, moved: &[(u64, u64)], report: &str) -> String {
    let (mut unchanged, mut longest) = (None, Duration::ZERO);
    if let Some([list, count]) = ReplyLines(report).pair("changes") {
        let changes = PlannedChange::read_all(target, list, count);
        let later = moved_functions(report, "moved-later ");
        let all: Vec<_> = moved.iter().copied().chain(later).collect();
        match changes.map(|changes| stopped_process::change(target, &all, &changes)) {
            Some(ChangeReport { copies: Ok(copies), stopped }) => {
                return format!("ok\ncopies {copies}\nstopped {}\n", stopped.as_nanos());
            }
            Some(ChangeReport { copies: Err(reason), stopped }) => {
                (unchanged, longest) = (Some(reason), stopped);
            }
            None => unchanged = Some("libdmd.so has no list of changes".to_owned()),
        }
    }
    let unchanged = unchanged.map_or(String::new(), |reason| format!("unchanged {reason}\n"));
    // A thread that cannot be stopped keeps its copies: then blocks that it frees stay in dumps.
    match copies::replace(target, moved) {
        Ok((copies, stopped)) => {
            let longest = longest.max(stopped).as_nanos();
            format!("ok\ncopies {copies}\nstopped {longest}\n{unchanged}")
        }
        Err(_) => format!("ok\nstopped {}\n{unchanged}", longest.as_nanos()),
    }
}

/// Checks the process, waits for the turn, and checks the process again: another attachment may have changed it, and
/// traces it during its own turn.
fn check_in_turn(process: u32, despite_filter: bool) -> Result<(TargetProcess, File), AttachError> {
    match TargetProcess::check(process, despite_filter) {
        Err(AttachError::Traced(_)) => {}
        checked => drop(checked?),
    }
    let turn = take_turn(process)?;
    Ok((TargetProcess::check(process, despite_filter)?, turn))
}

/// Waits until no other process attaches to this one or detaches, and keeps others waiting until the file is closed: in
/// this process, and in the one that makes the calls.
fn take_turn(process: u32) -> Result<File, AttachError> {
    const BETWEEN: Duration = Duration::from_millis(10);
    let folder = File::open(format!("/proc/{process}")).map_err(|_| AttachError::Ended)?;
    let until = Instant::now() + LONGEST;
    while !ptrace::lock(&folder) {
        if Instant::now() > until {
            return Err(AttachError::Failed(format!(
                "nothing was changed: another process, probably about-memory, has locked /proc/{process} for 10 s; try again"
            )));
        }
        std::thread::sleep(BETWEEN);
    }
    Ok(folder)
}

/// Waits for the library's report about the program's own allocators.
fn allocator_report(target: &TargetProcess, report: u64) -> Result<String, AttachError> {
    const BETWEEN: Duration = Duration::from_millis(2);
    let until = Instant::now() + LONGEST;
    while target.word(report).ok_or(AttachError::Ended)? == 0 {
        if Instant::now() > until {
            // The process is attached to. Only the blocks of such an allocator are missing.
            return Ok("unhooked the program's own allocator, if any: the search takes too long\n".to_owned());
        }
        std::thread::sleep(BETWEEN);
    }
    Ok(complete_report(target, report).unwrap_or_else(|| {
        "unhooked the program's own allocator, if any: libdmd.so has no complete report\n".to_owned()
    }))
}

/// The text of a report. A part of it would contain parts of addresses, so it has an end mark.
fn complete_report(target: &TargetProcess, report: u64) -> Option<String> {
    const MOST: usize = 16 << 20;
    let (text, bytes) = (target.word(report + 8)?, target.word(report + 16)?);
    let mut contents = vec![0; usize::try_from(bytes).ok().filter(|bytes| *bytes <= MOST)?];
    let is_read = target.read(text, &mut contents);
    let text = String::from_utf8(contents).ok().filter(|_| is_read)?;
    text.strip_suffix("end\n").map(str::to_owned)
}

/// The lines `KEY OLD NEW`: the addresses of functions and of those that now stand for them.
fn moved_functions<'t>(text: &'t str, key: &'static str) -> impl Iterator<Item = (u64, u64)> + 't {
    text.lines().filter_map(move |line| {
        let (old, new) = line.strip_prefix(key)?.split_once(' ')?;
        Some((old.parse().ok()?, new.parse().ok()?))
    })
}

/// The allocators of a report. `unchanged` is the reason why those are not hooked whose code had to change.
fn allocators(report: &str, unchanged: Option<&str>) -> Vec<StaticAllocator> {
    let lines = report.lines().filter_map(|line| {
        if let Some(name) = line.strip_prefix("hooked ") {
            return Some(StaticAllocator { name: name.to_owned(), refusal: None });
        }
        if let Some(name) = line.strip_prefix("later ") {
            return Some(StaticAllocator { name: name.to_owned(), refusal: unchanged.map(str::to_owned) });
        }
        let (name, refusal) = line.strip_prefix("unhooked ")?.split_once(": ")?;
        Some(StaticAllocator { name: name.to_owned(), refusal: Some(refusal.to_owned()) })
    });
    lines.collect()
}

/// Ends an attachment. The library stays loaded, and the next attachment uses it.
///
/// # Errors
///
/// Returns an error if the process is not attached to, if a call in it fails, or if references to the library stay.
pub fn detach(process: u32) -> Result<DetachReply, AttachError> {
    let (target, _turn) = check_in_turn(process, true)?;
    let objects = objects(&target)?;
    let function = library(&target, &objects, "DMDDetach").ok_or(AttachError::NotAttached)?;
    if filters_since_attachment(&target, &objects) {
        return Err(AttachError::FilterSince);
    }
    let text = keeper::run(LONGEST, || as_text(detach_here(&target, &objects, function)))?;
    let lines = ReplyLines::parse(&text)?;
    if let Some(reason) = lines.value("kept") {
        return Err(AttachError::Failed(format!(
            "the recording has ended, but the references to libdmd.so stay: {reason}"
        )));
    }
    let [older_freed, older_freed_bytes] = lines.pair("older-freed").unwrap_or_default();
    Ok(DetachReply {
        slots: lines.number("slots").unwrap_or(0),
        older_freed,
        older_freed_bytes,
        stopped: Duration::from_nanos(lines.number("stopped").unwrap_or(0)),
    })
}

/// The objects of the process. The tables that nearly every walk needs are read now, while no thread is stopped.
fn objects(target: &TargetProcess) -> Result<Vec<LoadedObject>, AttachError> {
    let mappings = target.mappings().map_err(|_| AttachError::Ended)?;
    let objects = LoadedObject::all(target, &mappings);
    for (number, object) in objects.iter().enumerate() {
        let is_executable = number == 0;
        if is_executable
            || object.is_recorder(target)
            || is_c_library(object)
            || is_loader(object)
            || object.path == "[vdso]"
        {
            object.tables(target);
            object.functions(target);
        }
    }
    Ok(objects)
}

/// Checks the program's processor and C library, and that the program has no sanitizer.
fn check_program(target: &TargetProcess, objects: &[LoadedObject]) -> Result<(), AttachError> {
    let mut header = [0; 20];
    let own = File::open("/proc/self/exe").and_then(|mut file| {
        std::io::Read::read_exact(&mut file, &mut header)?;
        Ok(header)
    });
    let theirs = File::open(target::program(target.number)).and_then(|mut file| {
        std::io::Read::read_exact(&mut file, &mut header)?;
        Ok(header)
    });
    // Compares the class of the files (32 or 64 bits), and the processor.
    if let (Ok(own), Ok(theirs)) = (own, theirs)
        && (own[4], &own[18..]) != (theirs[4], &theirs[18..])
    {
        return Err(AttachError::OtherMachine);
    }
    // Compilers link a sanitizer into the program, or as a library.
    let is_sanitizer =
        |object: &LoadedObject| ["libasan", "libtsan"].iter().any(|name| object.name().starts_with(name));
    let has_sanitizer = |program: &LoadedObject| {
        ["__asan_init", "__tsan_init", "__msan_init"]
            .iter()
            .any(|name| program.function(target, name).is_some())
    };
    if objects.iter().any(is_sanitizer) || objects.first().is_some_and(has_sanitizer) {
        return Err(AttachError::Sanitizer);
    }
    if objects.iter().any(is_c_library) {
        return Ok(());
    }
    // musl's loader and library are one file.
    let is_musl = |object: &&LoadedObject| object.name().starts_with("ld-musl") || object.name() == "libc.so";
    match objects.iter().find(is_musl) {
        Some(_) => Err(AttachError::OtherLibrary("of musl".to_owned())),
        None if objects.iter().any(is_loader) => {
            Err(AttachError::OtherLibrary("of another C library".to_owned()))
        }
        None => Err(AttachError::Static),
    }
}

/// The options as text for the library: entries `KEY VALUE`, each with a separator at its end, and a 0 at the end of
/// all.
fn wishes(request: &AttachRequest<'_>) -> Result<Vec<u8>, AttachError> {
    const END: u8 = 0x1f;
    let mut text = Vec::new();
    let mut add = |key: &str, value: &OsStr| {
        text.extend_from_slice(key.as_bytes());
        text.push(b' ');
        text.extend_from_slice(value.as_bytes());
        text.push(END);
    };
    add("folder", request.folder.as_os_str());
    add("sample", OsStr::new(&request.sample_bytes.to_string()));
    if let Some(record) = &request.record {
        add("record", record.as_os_str());
    }
    if request.waits {
        add("wait", OsStr::new("1"));
    }
    text.push(0);
    if text.len() > TEXT as usize || text[..text.len() - 1].contains(&0) {
        return Err(AttachError::Failed("a path is too long: record to a shorter path".to_owned()));
    }
    Ok(text)
}

/// The address of a function of `libdmd.so`. `None` unless an earlier attachment or `LD_PRELOAD` has loaded this
/// library into the process.
fn library(target: &TargetProcess, objects: &[LoadedObject], function: &str) -> Option<u64> {
    objects
        .iter()
        .filter(|object| object.is_recorder(target))
        .find_map(|object| object.function(target, function))
}

/// The functions of the C library that calls need.
struct CFunctions {
    errno: u64,
    map: u64,
    unmap: u64,
    system_call: u64,
}

impl CFunctions {
    fn find(target: &TargetProcess, objects: &[LoadedObject]) -> Result<Self, AttachError> {
        let find = |name: &str| exported(target, objects, name);
        Ok(Self {
            errno: find("__errno_location")?,
            map: find("mmap")?,
            unmap: find("munmap")?,
            system_call: find("syscall")?,
        })
    }
}

/// The address of a function of the C library.
fn exported(target: &TargetProcess, objects: &[LoadedObject], name: &str) -> Result<u64, AttachError> {
    let found = objects.iter().filter(|object| is_c_library(object) || object.name().starts_with("libdl"));
    let mut found = found.filter_map(|object| object.function(target, name));
    found.next().ok_or_else(|| AttachError::Failed(format!("its C library has no function {name}")))
}

/// The state that several calls into one process share.
struct CallPlan<'t> {
    target: &'t TargetProcess,
    objects: &'t [LoadedObject],
    functions: CFunctions,
    /// Memory in the process, for texts and for the stack of calls: mapped for these calls, or a part of the library.
    room: Option<u64>,
    is_mapped: bool,
    /// The distance from a thread's own data to its `errno`. `None` before the first call, and on processors on which
    /// [`CallingThread::thread_pointer`] is `None`.
    errno_distance: Option<u64>,
    /// The longest time for which a thread was stopped.
    longest: Duration,
}

impl<'t> CallPlan<'t> {
    fn new(target: &'t TargetProcess, objects: &'t [LoadedObject]) -> Result<Self, AttachError> {
        let functions = CFunctions::find(target, objects)?;
        let room = library(target, objects, "DMDRoom");
        Ok(Self {
            target,
            objects,
            functions,
            room,
            is_mapped: false,
            errno_distance: None,
            longest: Duration::ZERO,
        })
    }
}

impl CallPlan<'_> {
    /// Adds the longest time for which a thread was stopped to a reply.
    fn with_time(&self, reply: String) -> String {
        format!("{reply}stopped {}\n", self.longest.as_nanos())
    }
}

/// A stopped thread, with the room for the texts and the stack of its calls.
struct PreparedThread<'p, 't> {
    plan: &'p mut CallPlan<'t>,
    calls: CallingThread<'t>,
    room: u64,
    /// The address and the value of the thread's `errno`.
    errno: (u64, [u8; 4]),
    since: Instant,
}

impl<'p, 't> PreparedThread<'p, 't> {
    fn wait(plan: &'p mut CallPlan<'t>) -> Result<Self, AttachError> {
        let moment = moment::wait(plan.target, plan.objects)?;
        let since = moment.since;
        let mut calls = CallingThread::new(plan.target, moment.thread)?;
        let pointer = calls.thread_pointer();
        let place = match (plan.errno_distance, pointer) {
            (Some(distance), Some(pointer)) => pointer.wrapping_add(distance),
            _ => calls.call(plan.functions.errno, &[])?,
        };
        plan.errno_distance = pointer.map(|pointer| place.wrapping_sub(pointer));
        let mut value = [0; 4];
        plan.target.read(place, &mut value);
        let room = match plan.room {
            Some(room) => room,
            None => {
                let rights = (libc::PROT_READ | libc::PROT_WRITE) as u64;
                let kind = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
                plan.is_mapped = true;
                calls.call(plan.functions.map, &[0, ROOM, rights, kind, u64::MAX, 0])?
            }
        };
        if room as i64 == -1 {
            let _ = plan.target.write(place, &value);
            return Err(AttachError::Failed("the process has no memory for the call".to_owned()));
        }
        plan.room = Some(room);
        calls.use_stack(room + ROOM);
        Ok(Self { plan, calls, room, errno: (place, value), since })
    }

    /// Puts a text into the process, and returns its address. The next text replaces it.
    fn text(&self, text: &[u8]) -> Result<u64, AttachError> {
        self.plan.target.write(self.room, text)?;
        Ok(self.room)
    }

    fn system_call(&mut self, arguments: &[u64]) -> Result<u64, AttachError> {
        self.calls.call(self.plan.functions.system_call, arguments)
    }

    /// Calls a function of the library. If `wishes` is not `None`, passes this text to the function. Returns the reply.
    fn ask_library(&mut self, function: u64, wishes: Option<&[u8]>) -> Result<String, AttachError> {
        let reply = self.room + TEXT;
        let room = REPLY;
        let result = match wishes {
            Some(wishes) => {
                let wishes = self.text(wishes)?;
                self.calls.call(function, &[wishes, reply, room])?
            }
            None => self.calls.call(function, &[reply, room])?,
        };
        let text = self.plan.target.text(reply, REPLY as usize);
        if result as u32 == 0 { Ok(text) } else { Err(refusal(&text)) }
    }

    /// Lets the thread continue.
    fn end(self) {
        let (place, value) = self.errno;
        let _ = self.plan.target.write(place, &value);
        let since = self.since;
        drop(self.calls);
        self.plan.longest = self.plan.longest.max(since.elapsed());
    }

    /// Ends the last calls: gives the room back.
    fn end_with(mut self, reply: Result<String, AttachError>) -> Result<String, AttachError> {
        if self.plan.is_mapped {
            // A call must not unmap the stack on which it runs, so this call uses the thread's own stack.
            let unmap = self.plan.functions.unmap;
            if self.calls.call_on_first_stack(unmap, &[self.room, ROOM]).is_ok() {
                (self.plan.room, self.plan.is_mapped) = (None, false);
            }
        }
        self.end();
        reply
    }
}

/// The error in the library's reply.
fn refusal(text: &str) -> AttachError {
    let error =
        text.lines().find_map(|line| line.strip_prefix("error ")).unwrap_or("the library gives no reason");
    match error {
        "preloaded" => AttachError::Preloaded,
        "attached" => AttachError::Attached,
        "busy" => AttachError::Failed("the engine of this process records already".to_owned()),
        "no attachment" => AttachError::NotAttached,
        other => AttachError::Failed(other.to_owned()),
    }
}

fn attach_here(
    target: &TargetProcess,
    objects: &[LoadedObject],
    contents: &[u8],
    wishes: &[u8],
) -> Result<String, AttachError> {
    let mut plan = CallPlan::new(target, objects)?;
    if let Some(function) = library(target, objects, "DMDAttach") {
        let mut thread = PreparedThread::wait(&mut plan)?;
        let reply = thread.ask_library(function, Some(wishes));
        return thread.end_with(reply).map(|reply| plan.with_time(reply));
    }
    let loader = LoaderFunctions::find(target, objects)?;
    let mut refused =
        AttachError::Failed("the process cannot make a file without a name for libdmd.so".to_owned());
    for place in NamelessFile::ALL {
        // The thread goes on while the file is written.
        let mut thread = PreparedThread::wait(&mut plan)?;
        let made = place.make(&mut thread);
        thread.end();
        let Some(file) = made? else { continue };
        let filled = file.fill(contents).map_err(AttachError::from);
        let mut thread = match filled.and_then(|()| PreparedThread::wait(&mut plan)) {
            Ok(thread) => thread,
            Err(error) => return Err(give_back(&mut plan, Some(file.descriptor), error)),
        };
        let reply =
            load(&mut thread, &loader, &file).and_then(|function| thread.ask_library(function, Some(wishes)));
        match thread.end_with(reply) {
            Err(AttachError::Refused(reason)) => refused = AttachError::Refused(reason),
            result => return result.map(|reply| plan.with_time(reply)),
        }
    }
    Err(give_back(&mut plan, None, refused))
}

/// After an error: closes the library's file in the process, and gives the room back. Returns the error. If no thread
/// can make these calls, the returned error also names the memory and the descriptor that stay in the process.
fn give_back(plan: &mut CallPlan<'_>, descriptor: Option<u64>, error: AttachError) -> AttachError {
    if descriptor.is_none() && !plan.is_mapped {
        return error;
    }
    let Ok(mut thread) = PreparedThread::wait(plan) else {
        let error = error.to_string();
        let reason = error.split(": nothing was changed").next().unwrap_or_default();
        let file = descriptor.map_or(String::new(), |number| format!("the file descriptor {number} and "));
        return AttachError::Failed(format!(
            "{reason}: the process records nothing, but {file}{} KiB of memory stay in it",
            ROOM >> 10
        ));
    };
    if let Some(descriptor) = descriptor {
        // The result does not matter: the program may have closed the descriptor, or has ended.
        let _ = thread.system_call(&[libc::SYS_close as u64, descriptor]);
    }
    match thread.end_with(Err(error)) {
        Err(error) => error,
        Ok(_) => AttachError::Ended,
    }
}

fn detach_here(
    target: &TargetProcess,
    objects: &[LoadedObject],
    function: u64,
) -> Result<String, AttachError> {
    let mut plan = CallPlan::new(target, objects)?;
    let mut thread = PreparedThread::wait(&mut plan)?;
    let reply = thread.ask_library(function, None);
    thread.end_with(reply).map(|reply| plan.with_time(reply))
}

/// The addresses of `dlopen`, `dlsym` and `dlerror` in the process, or of the functions that replace them before glibc
/// 2.34. `error` is 0 if the process has no `dlerror`.
struct LoaderFunctions {
    open: u64,
    symbol: u64,
    error: u64,
}

impl LoaderFunctions {
    fn find(target: &TargetProcess, objects: &[LoadedObject]) -> Result<Self, AttachError> {
        let find = |name| exported(target, objects, name);
        // Before glibc 2.34 these functions are in a library that the program may not have loaded.
        let open = find("dlopen").or_else(|_| find("__libc_dlopen_mode"))?;
        let symbol = find("dlsym").or_else(|_| find("__libc_dlsym"))?;
        Ok(Self { open, symbol, error: find("dlerror").unwrap_or(0) })
    }
}

/// Makes the process load the library. Returns the address of its function `DMDAttach`.
fn load(
    thread: &mut PreparedThread<'_, '_>,
    loader: &LoaderFunctions,
    file: &OpenFile,
) -> Result<u64, AttachError> {
    if !file.is_still_there(thread.plan.target.number) {
        return Err(AttachError::Refused("the program has closed the descriptor of libdmd.so".to_owned()));
    }
    let loaded = open(thread, loader, file.descriptor);
    thread.system_call(&[libc::SYS_close as u64, file.descriptor])?;
    let handle = loaded?;
    let name = thread.text(b"DMDAttach\0")?;
    match thread.calls.call(loader.symbol, &[handle, name])? {
        0 => Err(AttachError::Failed("libdmd.so has no function DMDAttach".to_owned())),
        function => Ok(function),
    }
}

/// A kind of file without a name, through which the library reaches the process.
#[derive(Clone, Copy)]
enum NamelessFile {
    /// A file in memory, with the flags for `memfd_create`. Some systems require the flag for an executable file; older
    /// systems reject it.
    Memory(u32),
    /// A file in this folder.
    Folder(&'static [u8]),
}

impl NamelessFile {
    const EXECUTABLE: u32 = 0x10;
    const ALL: [Self; 6] = [
        Self::Memory(libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING | Self::EXECUTABLE),
        Self::Memory(libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING),
        Self::Folder(b"/tmp\0"),
        Self::Folder(b"/var/tmp\0"),
        Self::Folder(b"/dev/shm\0"),
        Self::Folder(b".\0"),
    ];

    /// Makes the file in the process; `None` if the system refuses, or if [`open_own_file`] rejects the file.
    fn make(self, thread: &mut PreparedThread<'_, '_>) -> Result<Option<OpenFile>, AttachError> {
        let descriptor = match self {
            Self::Memory(flags) => {
                let name = thread.text(b"libdmd.so\0")?;
                thread.system_call(&[libc::SYS_memfd_create as u64, name, flags.into()])?
            }
            Self::Folder(folder) => {
                let name = thread.text(folder)?;
                let flags = libc::O_TMPFILE | libc::O_RDWR | libc::O_CLOEXEC | libc::O_EXCL;
                let at = i64::from(libc::AT_FDCWD) as u64;
                thread.system_call(&[libc::SYS_openat as u64, at, name, flags as u64, 0o700])?
            }
        };
        if (descriptor as i64) < 0 {
            return Ok(None);
        }
        let file = open_own_file(thread.plan.target.number, descriptor);
        if file.is_none() {
            thread.system_call(&[libc::SYS_close as u64, descriptor])?;
        }
        Ok(file.map(|file| OpenFile { file, descriptor }))
    }
}

/// Opens the file behind a descriptor of the process, to write to it. A hostile process may have replaced the file by
/// one to which this process may write, but the hostile process may not. So the file is checked before it is opened: it
/// must be an ordinary file without a name, and belong to the process's user.
fn open_own_file(process: u32, descriptor: u64) -> Option<File> {
    let (user, _) = target::user_and_variable(process, "");
    // With `O_PATH`, the handle gives only metadata, and refers to the same file whatever the process does.
    let handle = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH)
        .open(descriptor_path(process, descriptor))
        .ok()?;
    let found = handle.metadata().ok()?;
    let is_own = found.is_file() && found.nlink() == 0 && found.uid() == user;
    if !is_own {
        return None;
    }
    OpenOptions::new().write(true).open(format!("/proc/self/fd/{}", handle.as_raw_fd())).ok()
}

/// A file without a name, with its descriptor in the process.
struct OpenFile {
    file: File,
    descriptor: u64,
}

impl OpenFile {
    /// Writes the library into the file, and makes the file unchangeable if it is in memory.
    fn fill(&self, contents: &[u8]) -> std::io::Result<()> {
        (&self.file).write_all(contents)?;
        // Only a file of `memfd_create` can be sealed. For an `O_TMPFILE` file of a folder, the call fails, and the file
        // stays writable. But no path leads to such a file, and it is closed soon.
        let _ = ptrace::seal(&self.file);
        Ok(())
    }

    /// Whether the descriptor still refers to the file.
    fn is_still_there(&self, process: u32) -> bool {
        let id = |found: fs::Metadata| (found.dev(), found.ino());
        let there = fs::metadata(descriptor_path(process, self.descriptor)).map(id);
        matches!((there, self.file.metadata().map(id)), (Ok(there), Ok(own)) if there == own)
    }
}

fn descriptor_path(process: u32, descriptor: u64) -> String {
    format!("/proc/{process}/fd/{descriptor}")
}

fn open(
    thread: &mut PreparedThread<'_, '_>,
    loader: &LoaderFunctions,
    descriptor: u64,
) -> Result<u64, AttachError> {
    let path = thread.text(format!("/proc/self/fd/{descriptor}\0").as_bytes())?;
    // `RTLD_DEEPBIND`: references of libdmd.so to names that it exports must lead to libdmd.so itself.
    let flags = libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_DEEPBIND | libc::RTLD_NODELETE;
    match thread.calls.call(loader.open, &[path, flags as u64])? {
        0 if loader.error != 0 => {
            let message = thread.calls.call(loader.error, &[])?;
            Err(AttachError::Refused(thread.plan.target.text(message, 512)))
        }
        0 => Err(AttachError::Refused("it gives no reason".to_owned())),
        handle => Ok(handle),
    }
}

/// The result as text for the process that waits for it.
fn as_text(result: Result<String, AttachError>) -> String {
    match result {
        Ok(reply) => format!("ok\n{reply}"),
        Err(AttachError::Preloaded) => "error preloaded\n".to_owned(),
        Err(AttachError::Attached) => "error attached\n".to_owned(),
        Err(AttachError::NotAttached) => "error no attachment\n".to_owned(),
        Err(error) => format!("error {error}\n"),
    }
}

/// The lines `KEY VALUE` of a reply.
struct ReplyLines<'t>(&'t str);

impl<'t> ReplyLines<'t> {
    fn parse(text: &'t str) -> Result<Self, AttachError> {
        match text.strip_prefix("ok\n") {
            Some(lines) if text.ends_with('\n') => Ok(Self(lines)),
            _ if !text.ends_with('\n') => {
                Err(AttachError::Failed("the helper process ended early".to_owned()))
            }
            _ => Err(refusal(text)),
        }
    }

    fn value(&self, key: &str) -> Option<&'t str> {
        self.0.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.value(key)?.parse().ok()
    }

    fn pair(&self, key: &str) -> Option<[u64; 2]> {
        let (first, second) = self.value(key)?.split_once(' ')?;
        Some([first.parse().ok()?, second.parse().ok()?])
    }
}
