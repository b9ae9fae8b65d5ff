//! With DMD: `heap-unclassified` by module, type and function, and the tree `twice-reported`.
//!
//! Invariant: the reports under `explicit/heap-unclassified/` add up to `heap-allocated` less all other
//! HEAP reports under `explicit/`, to the byte. So a view shows what it would have computed.

use core::cmp::Reverse;
use std::collections::BTreeMap;

use memory_report::{Kind, Report, ReportSet, Units, path_segment, tree};

use crate::engine_abi::{Collecting, DarkMatter, Rows};
use crate::reporting::{ByAmount, amounts, is_explicit};

const UNCLASSIFIED: &str = "explicit/heap-unclassified";
const TWICE: &str = "twice-reported";
/// The crates whose memory a collection itself allocates, by the engine's names.
const OURS: [&str; 2] = ["memory_reporter", "memory_report"];
/// A view hides nodes with less than this part of their tree.
const TINY: i64 = 100;
/// The description of what was reported by amount has this many paths.
const NAMED: usize = 5;

/// Ends the collection, and adds the rows of the engine to its reports. `by_amount` are the claims without blocks. False
/// if others ran reporters at the same time, so that the engine cannot attribute memory.
pub(crate) fn add(
    set: &mut ReportSet,
    process: &str,
    collecting: Collecting,
    by_amount: &[ByAmount],
) -> bool {
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
        let by_amount = Amounts::of(by_amount);
        let whole = i128::from(sums.unclassified()) - i128::from(modules.total());
        let whole = whole + i128::from(counted_twice) + i128::from(by_amount.total());
        let mut rest = i64::try_from(whole.clamp(i64::MIN.into(), i64::MAX.into())).unwrap_or_default();
        if rest < 0 && -rest <= modules.total() / TINY {
            // Blocks that other threads have allocated since `heap-allocated` was read.
            modules.take_from_largest(-rest);
            rest = 0;
        }
        modules.report(set, process, &Tree { root: UNCLASSIFIED, kind: Kind::Heap, least: sums.tiny() });
        let mut row = |path: &str, amount: i64, description: &str| {
            let (kind, units) = (Kind::Heap, Units::Bytes);
            set.push(Report { process, path, kind, units, amount, description });
        };
        if counted_twice > 0 {
            row(tree::COUNTED_TWICE, -counted_twice, "What `twice-reported` is of, counted once too often.");
        }
        if by_amount.total() > 0 {
            row(tree::BY_AMOUNT, -by_amount.total(), &by_amount.describe());
        }
        row(
            "explicit/heap-unclassified/(rest)",
            rest,
            "Memory in heap-allocated that no reporter claims, and of which DMD knows no block. Negative \
             where DMD knows blocks that heap-allocated does not count, or where other threads allocated \
             meanwhile.",
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

/// The bytes that reports claim without blocks, by path.
struct Amounts<'a>(BTreeMap<&'a str, i64>);

impl<'a> Amounts<'a> {
    fn of(claims: &'a [ByAmount]) -> Self {
        let mut amounts: BTreeMap<&str, i64> = BTreeMap::new();
        for ByAmount { path, bytes } in claims {
            let amount = amounts.entry(path).or_default();
            *amount = amount.saturating_add(*bytes);
        }
        Self(amounts)
    }

    fn total(&self) -> i64 {
        self.0.values().fold(0, |total, bytes| total.saturating_add(*bytes))
    }

    fn describe(&self) -> String {
        let mut largest: Vec<(&str, i64)> = self.0.iter().map(|(path, bytes)| (*path, *bytes)).collect();
        largest.sort_by_key(|(_, bytes)| Reverse(*bytes));
        let others = largest.len().saturating_sub(NAMED);
        largest.truncate(NAMED);
        let mut paths: Vec<String> =
            largest.iter().map(|(path, bytes)| format!("`{path}` ({bytes} bytes)")).collect();
        if others > 0 {
            paths.push(format!("{others} more"));
        }
        format!(
            "Reporters computed these amounts and named no blocks, so that the blocks are still listed here by \
             crate: {}.",
            paths.join(", ")
        )
    }
}

#[derive(Default)]
struct Function {
    bytes: i64,
    estimated: bool,
    /// Empty if no reporter claims the blocks.
    reporters: String,
}

type Functions = BTreeMap<String, Function>;

/// Functions by type, by module. Functions whose blocks have no known type are under an empty name.
struct Modules(BTreeMap<String, BTreeMap<String, Functions>>);

/// The tree of the reports.
struct Tree {
    root: &'static str,
    kind: Kind,
    /// Functions with fewer bytes are reported together.
    least: i64,
}

/// The functions of one node that are reported together.
#[derive(Default)]
struct Rest {
    bytes: i64,
    functions: usize,
    estimated: bool,
}

impl Modules {
    fn of(rows: Vec<DarkMatter>) -> Self {
        let mut modules: BTreeMap<String, BTreeMap<String, Functions>> = BTreeMap::new();
        for row in rows {
            let DarkMatter { module, function, detail, bytes, twice, estimated } = row;
            let (type_name, reporters) =
                if twice { (String::new(), detail) } else { (detail, String::new()) };
            let functions = modules.entry(module).or_default().entry(type_name).or_default();
            functions.insert(function, Function { bytes, estimated, reporters });
        }
        Self(modules)
    }

    fn functions(&mut self) -> impl Iterator<Item = &mut Function> {
        self.0.values_mut().flat_map(BTreeMap::values_mut).flat_map(BTreeMap::values_mut)
    }

    fn total(&self) -> i64 {
        self.0.values().flat_map(BTreeMap::values).map(total).sum()
    }

    /// Subtracts at most this many bytes from the functions of a module; returns how many are left.
    fn take_from(&mut self, module: &str, mut bytes: i64) -> i64 {
        let types = self.0.get_mut(module).into_iter().flat_map(BTreeMap::values_mut);
        for function in types.flat_map(BTreeMap::values_mut) {
            let taken = bytes.clamp(0, function.bytes.max(0));
            function.bytes -= taken;
            bytes -= taken;
        }
        bytes
    }

    fn take_from_largest(&mut self, bytes: i64) {
        if let Some(largest) = self.functions().max_by_key(|function| function.bytes) {
            largest.bytes -= bytes;
            largest.estimated = true;
        }
    }

    fn report(&self, set: &mut ReportSet, process: &str, tree: &Tree) {
        for (module, types) in &self.0 {
            let path = format!("{}/{}", tree.root, path_segment(module));
            let mut push = |path: &str, amount: i64, description: &str| {
                let (kind, units) = (tree.kind, Units::Bytes);
                set.push(Report { process, path, kind, units, amount, description });
            };
            let (mut rest, mut shown) = (Rest::default(), 0);
            for (type_name, functions) in types {
                if type_name.is_empty() {
                    shown += tree.report_each(functions, &path, &mut rest, &mut push);
                } else if total(functions) < tree.least {
                    functions.values().for_each(|function| rest.add(function));
                } else {
                    shown += 1;
                    let path = format!("{path}/{}", path_segment(type_name));
                    let mut rest = Rest::default();
                    let shown = tree.report_each(functions, &path, &mut rest, &mut push);
                    tree.report_rest(&rest, &path, shown, &mut push);
                }
            }
            tree.report_rest(&rest, &path, shown, &mut push);
        }
    }
}

fn total(functions: &Functions) -> i64 {
    functions.values().map(|function| function.bytes).sum()
}

impl Tree {
    /// Reports the large functions of a node, and returns their number. The others add to `rest`.
    fn report_each(
        &self,
        functions: &Functions,
        path: &str,
        rest: &mut Rest,
        push: &mut impl FnMut(&str, i64, &str),
    ) -> usize {
        let mut shown = 0;
        for (name, function) in functions {
            if function.bytes < self.least {
                rest.add(function);
                continue;
            }
            shown += 1;
            let mark = if function.estimated { "~" } else { "" };
            push(&format!("{path}/{mark}{}", path_segment(name)), function.bytes, &function.describe());
        }
        shown
    }

    /// Reports the other functions of a node: as the node itself, if there are no nodes below it.
    fn report_rest(&self, rest: &Rest, path: &str, shown: usize, push: &mut impl FnMut(&str, i64, &str)) {
        if rest.bytes == 0 {
            return;
        }
        let mark = if rest.estimated { "~" } else { "" };
        let path = match path.rsplit_once('/') {
            Some((parent, name)) if shown == 0 => format!("{parent}/{mark}{name}"),
            _ => format!("{path}/{mark}(others)"),
        };
        let what = if self.kind == Kind::Heap { "no reporter claims" } else { "was reported twice" };
        let plural = if rest.functions == 1 { "" } else { "s" };
        let number = rest.functions;
        push(&path, rest.bytes, &format!("What {number} function{plural} allocated and {what}."));
    }
}

impl Rest {
    fn add(&mut self, function: &Function) {
        self.bytes += function.bytes;
        self.functions += 1;
        self.estimated |= function.estimated;
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
