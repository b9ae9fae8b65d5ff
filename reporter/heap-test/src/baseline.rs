//! Compares scopes with a baseline in the repository, and updates the baseline.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use memory_report::new_file::{NewFile, Readers};
use memory_reporter::scopes::HeapFigures;

use crate::baseline_text::{BaselineText, FIGURES};
use crate::failure::{FailedFigure, HeapFailure, panic_with};
use crate::figure::{HeapFigure, MeasuredHeap, grouped};

/// The variable that makes a test write the baseline.
const UPDATE: &str = "UPDATE_HEAP_BASELINE";

/// Tests on other threads may update the same file. The lock of a file belongs to the process on some systems.
static UPDATING: Mutex<()> = Mutex::new(());

/// Implements `assert_heap_baseline!`.
#[doc(hidden)]
#[track_caller]
pub fn check(package: &str, path: &Path, heaps: &[&dyn MeasuredHeap]) {
    let file = Path::new(package).join(path);
    let shown = path.display();
    let mut scopes = Vec::new();
    let mut names = BTreeSet::new();
    for heap in heaps {
        let name = heap.scope().name();
        assert!(
            !name.is_empty() && !name.contains(['\n', '\r']),
            "the name {name:?} of a scope is not one line"
        );
        assert!(names.insert(name), "two scopes have the name `{name}`, so {shown} cannot contain both");
        match heap.heap_figures() {
            Ok(figures) => scopes.push((*heap, figures)),
            Err(error) => panic!("the heap of `{name}` is not known: {error}"),
        }
    }
    if env::var_os(UPDATE).is_some_and(|value| !value.is_empty() && value != "0") {
        return update(&file, &scopes).unwrap_or_else(|error| panic!("{shown}: not updated: {error}"));
    }
    let bytes = match fs::read(&file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            panic!("there is no baseline {shown}: run the test with {UPDATE}=1 to write it")
        }
        Err(error) => panic!("{shown}: {error}"),
    };
    let baseline = BaselineText::parse(&bytes).unwrap_or_else(|fault| panic!("{shown}: {fault}"));
    let failures: Vec<HeapFailure<'_>> = scopes
        .iter()
        .filter_map(|(heap, figures)| {
            let name = heap.scope().name();
            let Some(known) = baseline.0.get(name) else {
                panic!("{shown} has no scope `{name}`: run the test with {UPDATE}=1 to add it")
            };
            let failed = grown(known, figures);
            (!failed.is_empty()).then(|| HeapFailure { scope: heap.scope(), figures, failed })
        })
        .collect();
    if !failures.is_empty() {
        let end = format!("the baseline is {shown}; to accept the growth, run the test with {UPDATE}=1\n");
        panic_with(&failures.iter().collect::<Vec<_>>(), &end);
    }
}

/// The figures that are larger than in the baseline.
fn grown(known: &BTreeMap<HeapFigure, u64>, figures: &HeapFigures) -> Vec<FailedFigure> {
    let compared = known.iter().filter(|(figure, _)| FIGURES.contains(figure));
    compared
        .map(|(figure, limit)| (*figure, i128::from(*limit), figure.amount(figures)))
        .filter(|(_, limit, amount)| amount > limit)
        .map(|(figure, limit, amount)| FailedFigure {
            figure,
            expected: format!("at most {}", figure.text(limit)),
            amount,
            difference: format!(" (+{})", grouped(amount - limit)),
        })
        .collect()
}

/// Waits until no other process updates a file in this folder. The lock ends with the returned file.
///
/// The baseline itself is replaced, and a file beside it would stay in the repository. So the lock is on the folder.
#[cfg(unix)]
fn lock_folder(folder: &Path) -> io::Result<fs::File> {
    let folder = fs::File::open(folder)?;
    rustix::io::retry_on_intr(|| rustix::fs::flock(&folder, rustix::fs::FlockOperation::LockExclusive))?;
    Ok(folder)
}

/// Writes the figures of these scopes. Lines of other scopes stay.
fn update(file: &Path, scopes: &[(&dyn MeasuredHeap, HeapFigures)]) -> io::Result<()> {
    let _updating = UPDATING.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    #[cfg(unix)]
    let _locked = lock_folder(folder)?;
    let mut baseline = match fs::read(file) {
        Ok(bytes) if bytes.is_empty() => BaselineText::default(),
        // A fault may hide lines of other scopes.
        Ok(bytes) => BaselineText::parse(&bytes).map_err(|fault| {
            io::Error::other(format!("{fault}; correct the file, or delete it to write all scopes anew"))
        })?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => BaselineText::default(),
        Err(error) => return Err(error),
    };
    for (heap, figures) in scopes {
        let amount = |figure: HeapFigure| u64::try_from(figure.amount(figures)).unwrap_or(0);
        let figures = FIGURES.into_iter().map(|figure| (figure, amount(figure))).collect();
        baseline.0.insert(heap.scope().name().to_owned(), figures);
    }
    let mut new = NewFile::create(file, Readers::Umask)?;
    write!(new.file(), "{baseline}")?;
    new.finish()
}
