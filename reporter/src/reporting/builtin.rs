//! The reporters that every program has. They run first, so that the allocations of other reporters do not change
//! their numbers.

use memory_report::{Kind, Units, amount, path_segment};

use crate::allocator::{self, declared};
use crate::engine_abi::{engine_sizes, is_itself, log_bytes, working_bytes};
use crate::platform;

use super::memory_reporter::MemoryReporter;
use super::reports::Reports;
use super::{amounts, registry};

/// The built-in reporters, in the order in which they run.
pub(crate) fn reporters() -> [&'static dyn MemoryReporter; 6] {
    [&HeapReporter, &ProcessReporter, &ThreadStacks, &RegistryReporter, &DmdReporter, &GroupReporter]
}

struct HeapReporter;

impl MemoryReporter for HeapReporter {
    fn name(&self) -> &str {
        "heap"
    }

    fn collect_reports(&self, out: &mut Reports) {
        row(
            out,
            "heap-allocated",
            Units::Bytes,
            amounts::heap_allocated(),
            "Memory in live blocks of the program's allocator, the slop of each block included.",
        );
        let statistics = declared().map(|allocator| allocator.statistics()).unwrap_or_default();
        row(
            out,
            "heap-committed",
            Units::Bytes,
            statistics.committed,
            "Memory that the program's allocator has taken from the system and that is backed by pages.",
        );
        row(
            out,
            "heap-mapped",
            Units::Bytes,
            statistics.mapped,
            "Address space that the program's allocator has taken from the system.",
        );
        row(
            out,
            "heap-overhead",
            Units::Bytes,
            statistics.overhead,
            "Memory committed by the program's allocator outside of live blocks: headers, bookkeeping and free pages.",
        );
        row(
            out,
            "system-heap-allocated",
            Units::Bytes,
            amounts::system_heap_allocated(),
            "Memory handed out by the C library's malloc, its headers and cached free chunks included.",
        );
    }
}

struct ProcessReporter;

impl MemoryReporter for ProcessReporter {
    fn name(&self) -> &str {
        "process"
    }

    fn collect_reports(&self, out: &mut Reports) {
        row(
            out,
            "vsize",
            Units::Bytes,
            amounts::vsize(),
            "Address space in use: code, data, stacks, heap and mapped files, whether or not backed by pages.",
        );
        row(
            out,
            "resident",
            Units::Bytes,
            amounts::resident(),
            "Physical memory in use, pages shared with other processes included.",
        );
        row(
            out,
            "resident-peak",
            Units::Bytes,
            amounts::resident_peak(),
            "The largest amount of physical memory that was in use at once.",
        );
        row(
            out,
            "resident-unique",
            Units::Bytes,
            amounts::resident_unique(),
            "Physical memory that only this process uses: the system would get it back if the process ended.",
        );
        row(
            out,
            "page-faults-hard",
            Units::CountCumulative,
            amounts::page_faults_hard(),
            "Page faults that had to wait for a disk.",
        );
        row(
            out,
            "page-faults-soft",
            Units::CountCumulative,
            amounts::page_faults_soft(),
            "Page faults that did not wait for a disk.",
        );
    }
}

fn row(out: &mut Reports, path: &str, units: Units, value: Option<u64>, description: &str) {
    if let Some(value) = value {
        out.report(path, Kind::Other, units, amount(value), description);
    }
}

struct ThreadStacks;

impl MemoryReporter for ThreadStacks {
    fn name(&self) -> &str {
        "threads"
    }

    fn collect_reports(&self, out: &mut Reports) {
        let mut lost = 0;
        for stack in platform::thread_stacks(&allocator::noted_stacks()) {
            let Some(bytes) = stack.bytes else {
                lost += 1;
                continue;
            };
            let name = if out.anonymize() { "<anonymized>".into() } else { path_segment(&stack.name) };
            out.report(
                format!("explicit/threads/stacks/{name} (tid={})", stack.tid),
                Kind::NonHeap,
                Units::Bytes,
                amount(bytes),
                "The part of a thread's stack that has been touched.",
            );
        }
        if lost > 0 {
            let (what, why) = match lost {
                1 => ("the stack of 1 thread".to_owned(), "the system does not show where it is"),
                _ => (format!("the stacks of {lost} threads"), "the system does not show where they are"),
            };
            out.unavailable(&what, why);
        }
    }
}

struct RegistryReporter;

impl MemoryReporter for RegistryReporter {
    fn name(&self) -> &str {
        "memory-reporter"
    }

    fn collect_reports(&self, out: &mut Reports) {
        if is_itself() {
            // In the preloaded library, the list is not memory of the program, so it has no report.
            return;
        }
        out.heap_with(
            "explicit/memory-reporter/registry",
            registry::measure,
            "Memory used by the list of registered reporters.",
        );
    }
}

struct DmdReporter;

impl MemoryReporter for DmdReporter {
    fn name(&self) -> &str {
        "dmd"
    }

    fn collect_reports(&self, out: &mut Reports) {
        let Some(sizes) = engine_sizes() else { return };
        let rows = [
            ("stack-traces/used", sizes.traces_used, "Memory used by DMD for stack traces."),
            ("stack-traces/unused", sizes.traces_unused, "Memory reserved by DMD for future stack traces."),
            ("stack-traces/table", sizes.trace_table, "Memory used by DMD to find stack traces."),
            ("live-block-table", sizes.live_blocks, "Memory used by DMD for live blocks."),
            ("dead-block-table", sizes.dead_blocks, "Memory used by DMD for freed blocks."),
            ("reports", sizes.marks, "Memory used by DMD to record the reporters of blocks."),
            ("threads", sizes.threads, "Memory used by DMD for each thread."),
            (
                "working-memory",
                working_bytes().unwrap_or_default(),
                "Memory used by DMD for symbols, and to write dumps.",
            ),
            ("logs", log_bytes().unwrap_or_default(), "Memory set aside by DMD for logs of allocations."),
        ];
        for (name, bytes, description) in rows {
            let path = format!("explicit/dmd/{name}");
            out.report(path, Kind::NonHeap, Units::Bytes, amount(bytes), description);
        }
    }
}

/// The memory group (cgroup) of the process, and the time that tasks wait for memory. The names have no `/`: a tree
/// would add the rows up, and the sum has no meaning.
struct GroupReporter;

impl MemoryReporter for GroupReporter {
    fn name(&self) -> &str {
        "cgroup"
    }

    fn collect_reports(&self, out: &mut Reports) {
        let group = platform::group_amounts();
        let rows = [
            ("current", group.current, "Memory of all processes in this process's memory group."),
            (
                "max",
                group.max,
                "The limit of the memory group: the least limit of the group and of all groups around it.",
            ),
            ("peak", group.peak, "The largest amount of memory that the memory group had at once."),
            ("anon", group.anon, "Memory of the memory group without a file: heaps, stacks and the like."),
            (
                "file",
                group.file,
                "Memory of the memory group that caches files; the kernel can free most of it.",
            ),
            ("kernel", group.kernel, "Memory of the memory group that the kernel needs for its own data."),
        ];
        for (name, bytes, description) in rows {
            row(out, &format!("cgroup-{name}"), Units::Bytes, bytes, description);
        }
        let events = [
            ("high", "Times that the kernel slowed the memory group down at its bound `memory.high`."),
            ("max", "Times that the memory group was about to exceed its limit."),
            ("oom", "Times that an allocation failed at the limit of the memory group."),
            ("oom-kill", "Processes of the memory group that the kernel has killed for lack of memory."),
        ];
        for ((name, description), count) in events.into_iter().zip(group.events) {
            row(out, &format!("cgroup-events-{name}"), Units::CountCumulative, count, description);
        }
        let stalls = platform::memory_stalls();
        let rows = [
            ("psi-some", stalls.some, "The share of the last ten seconds in which a task waited for memory."),
            (
                "psi-full",
                stalls.full,
                "The share of the last ten seconds in which all tasks waited for memory.",
            ),
        ];
        for (path, share, description) in rows {
            row(out, path, Units::Percentage, share, description);
        }
    }
}
