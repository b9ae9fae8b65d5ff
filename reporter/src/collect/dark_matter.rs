//! With DMD: `heap-unclassified` by module and function, and the tree `twice-reported`.
//!
//! Invariant: the reports under `explicit/heap-unclassified/` add up to `heap-allocated` less all other
//! HEAP reports under `explicit/`, to the byte. So a view shows what it would have computed.

use std::collections::BTreeMap;

use memory_report::{Kind, Report, ReportSet, Units, path_segment};

use crate::engine_abi::{Collecting, DarkMatter, Rows};
use crate::reporting::{amounts, is_explicit};

const UNCLASSIFIED: &str = "explicit/heap-unclassified";
const TWICE: &str = "twice-reported";
/// The crates whose memory a collection itself allocates, by the engine's names.
const OURS: [&str; 2] = ["memory_reporter", "memory_report"];
/// A view hides nodes with less than this part of their tree.
const TINY: i64 = 100;

/// Ends the collection, and adds the rows of the engine to its reports. False if others ran reporters at the same
/// time, so that the engine cannot attribute memory.
pub(crate) fn add(set: &mut ReportSet, process: &str, collecting: Collecting) -> bool {
    let now = amounts::heap_allocated().map_or(0, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
    let (told, rows) = collecting.end();
    if told != Rows::Told {
        return told == Rows::None;
    }
    let (twice, unreported): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.twice);
    let mut sums = Sums::of(set);
    let twice = Modules::of(twice);
    let counted_twice = twice.total();
    if let Some(allocated) = sums.allocated {
        let mut modules = Modules::of(unreported);
        OURS.iter().fold(now.saturating_sub(allocated), |own, module| modules.take_from(module, own));
        let mut rest = sums.unclassified() - modules.total() + counted_twice;
        if rest < 0 && -rest <= modules.total() / TINY {
            // Blocks that other threads have allocated since `heap-allocated` was read.
            modules.take_from_largest(-rest);
            rest = 0;
        }
        modules.report(set, process, &Tree { root: UNCLASSIFIED, kind: Kind::Heap, least: sums.tiny() });
        let mut row = |name: &str, amount: i64, description: &str| {
            let path = format!("{UNCLASSIFIED}/{name}");
            let (kind, units) = (Kind::Heap, Units::Bytes);
            set.push(Report { process, path: &path, kind, units, amount, description });
        };
        if counted_twice > 0 {
            row("(counted twice)", -counted_twice, "What `twice-reported` is of, counted once too often.");
        }
        row(
            "(rest)",
            rest,
            "Memory in heap-allocated that no reporter claims, and of which DMD knows no block. Negative \
             where reporters claim memory without measuring it, or DMD knows blocks that heap-allocated does \
             not count.",
        );
    }
    sums.explicit = counted_twice;
    twice.report(set, process, &Tree { root: TWICE, kind: Kind::Other, least: sums.tiny() });
    true
}

/// The sums of a collection's reports, in bytes.
#[derive(Default)]
struct Sums {
    allocated: Option<i64>,
    heap: i64,
    explicit: i64,
}

impl Sums {
    fn of(set: &ReportSet) -> Self {
        let mut sums = Self::default();
        for report in set.iter() {
            match report.kind {
                Kind::Other if report.path == "heap-allocated" => sums.allocated = Some(report.amount),
                Kind::Heap if is_explicit(report.path) => sums.heap = sums.heap.saturating_add(report.amount),
                Kind::NonHeap if is_explicit(report.path) => {
                    sums.explicit = sums.explicit.saturating_add(report.amount);
                }
                _ => {}
            }
        }
        sums.explicit = sums.explicit.saturating_add(sums.allocated.unwrap_or(sums.heap));
        sums
    }

    fn unclassified(&self) -> i64 {
        self.allocated.unwrap_or_default().saturating_sub(self.heap)
    }

    /// Functions with fewer bytes are reported together.
    fn tiny(&self) -> i64 {
        self.explicit / TINY
    }
}

#[derive(Default)]
struct Function {
    bytes: i64,
    estimated: bool,
    reporters: String,
}

/// Functions by module.
struct Modules(BTreeMap<String, BTreeMap<String, Function>>);

/// The tree of the reports.
struct Tree {
    root: &'static str,
    kind: Kind,
    /// Functions with fewer bytes are reported together.
    least: i64,
}

impl Modules {
    fn of(rows: Vec<DarkMatter>) -> Self {
        let mut modules: BTreeMap<String, BTreeMap<String, Function>> = BTreeMap::new();
        for row in rows {
            let DarkMatter { module, function, reporters, bytes, estimated, .. } = row;
            modules.entry(module).or_default().insert(function, Function { bytes, estimated, reporters });
        }
        Self(modules)
    }

    fn total(&self) -> i64 {
        self.0.values().flat_map(BTreeMap::values).map(|function| function.bytes).sum()
    }

    /// Subtracts at most this many bytes from the functions of a module; returns how many are left.
    fn take_from(&mut self, module: &str, mut bytes: i64) -> i64 {
        for function in self.0.get_mut(module).into_iter().flat_map(BTreeMap::values_mut) {
            let taken = bytes.clamp(0, function.bytes.max(0));
            function.bytes -= taken;
            bytes -= taken;
        }
        bytes
    }

    fn take_from_largest(&mut self, bytes: i64) {
        let functions = self.0.values_mut().flat_map(BTreeMap::values_mut);
        if let Some(largest) = functions.max_by_key(|function| function.bytes) {
            largest.bytes -= bytes;
            largest.estimated = true;
        }
    }

    fn report(&self, set: &mut ReportSet, process: &str, tree: &Tree) {
        for (module, functions) in &self.0 {
            let module_path = format!("{}/{}", tree.root, path_segment(module));
            let mut push = |path: &str, amount: i64, description: &str| {
                let (kind, units) = (tree.kind, Units::Bytes);
                set.push(Report { process, path, kind, units, amount, description });
            };
            let (mut rest, mut others, mut estimated) = (0, 0, false);
            for (name, function) in functions {
                if function.bytes < tree.least {
                    rest += function.bytes;
                    others += 1;
                    estimated |= function.estimated;
                    continue;
                }
                let mark = if function.estimated { "~" } else { "" };
                let path = format!("{module_path}/{mark}{}", path_segment(name));
                push(&path, function.bytes, &function.describe());
            }
            if rest != 0 {
                let mark = if estimated { "~" } else { "" };
                let path = if others == functions.len() {
                    let (parent, name) = module_path.rsplit_once('/').unwrap_or((tree.root, &module_path));
                    format!("{parent}/{mark}{name}")
                } else {
                    format!("{module_path}/{mark}(others)")
                };
                let what = if tree.kind == Kind::Heap { "no reporter claims" } else { "was reported twice" };
                let plural = if others == 1 { "" } else { "s" };
                push(&path, rest, &format!("What {others} function{plural} allocated and {what}."));
            }
        }
    }
}

impl Function {
    fn describe(&self) -> String {
        let estimate = if self.estimated { " An estimate from the blocks with a stack." } else { "" };
        match &*self.reporters {
            "" => format!("What the function allocated and no reporter claims.{estimate}"),
            reporters => {
                format!("What the function allocated and was reported twice, by {reporters}.{estimate}")
            }
        }
    }
}
