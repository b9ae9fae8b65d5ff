//! The types of blocks, from their allocation stacks alone.
//!
//! Names of functions contain the types for which they were compiled. The innermost library function whose name
//! contains the element's type names the block: `RawVec<app::Job>::grow_one` allocates `[app::Job]`. If no function
//! contains the type, the verdict is the function that allocated. A verdict is never a guess.
//!
//! ```text
//! generics   a function's name -> path, types
//! rules      library functions -> how the type follows, as data
//! role       a frame -> its role, by the rules
//! verdict    a stack's roles -> a type, or a function
//! spelling   types as programmers write them
//! ```
//!
//! A block's type may change without an allocation: an in-place `collect` reuses the block of another element type, and
//! `String::into_bytes` reuses the block of a string. The verdict is the type at the last allocation.

mod generics;
mod role;
mod rules;
mod spelling;
mod verdict;

use std::sync::Arc;
use std::thread;

use rustc_hash::FxHashMap;

use crate::dump::{CallId, Dump, DumpTraceId};
use role::FrameFacts;
use verdict::VerdictBasis;

pub use generics::FunctionName;
pub use spelling::shorten as short_type_name;
pub use verdict::{TypeCertainty, TypeVerdict};

/// The way in which a block consists of values of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BlockShape {
    /// One value, such as the value in a `Box`, an `ArcInner`, or a node of a map.
    One,
    /// Room for any number of elements: the buffer of a `Vec`, a `VecDeque` or a `String`.
    Slice,
    /// The elements of a boxed slice.
    BoxedSlice,
    /// A hash table: entries, and one byte of control data for each.
    Table,
}

/// The verdicts about the stacks of a dump. Each verdict is computed once.
#[derive(Debug, Default)]
pub struct TypeNames {
    /// The index of each stack's verdict in the list of verdicts.
    of_stacks: Vec<u32>,
    /// For each stack, the index of the frame that names the type.
    naming: Vec<Option<u32>>,
    verdicts: Vec<Arc<TypeVerdict>>,
}

impl TypeNames {
    /// Computes the verdicts. Look up the dump's frames first, for example with `Dump::symbolize`.
    pub fn new(dump: &Dump) -> Self {
        let facts = facts(dump);
        let mut ids: FxHashMap<TypeVerdict, u32> = FxHashMap::default();
        // The verdicts of stacks without a type, by the frame that allocated.
        let mut of_frames: Vec<Option<u32>> = vec![None; facts.len()];
        let mut names = Self::default();
        let mut of_stack = Vec::new();
        for index in 0..dump.traces.len() {
            let frames = dump.trace(DumpTraceId(index as u32));
            of_stack.clear();
            of_stack.extend(frames.iter().map(|id| &facts[id.index()]));
            let basis = VerdictBasis::find(&of_stack, |index| dump.frames.get(frames[index]));
            names.naming.push(match basis {
                VerdictBasis::Typed(_, _, index) => u32::try_from(index).ok(),
                VerdictBasis::In(_) => None,
            });
            let id = match basis {
                VerdictBasis::Typed(typed, certainty, _) => {
                    names.id(&mut ids, TypeVerdict::typed(typed, certainty))
                }
                VerdictBasis::In(None) => names.id(&mut ids, TypeVerdict::within(None)),
                VerdictBasis::In(Some(index)) => {
                    let frame = frames[index];
                    let verdict = || TypeVerdict::within(Some(&dump.frames.get(frame)));
                    *of_frames[frame.index()].get_or_insert_with(|| names.id(&mut ids, verdict()))
                }
            };
            names.of_stacks.push(id);
        }
        names
    }

    fn id(&mut self, ids: &mut FxHashMap<TypeVerdict, u32>, verdict: TypeVerdict) -> u32 {
        *ids.entry(verdict).or_insert_with_key(|verdict| {
            self.verdicts.push(Arc::new(verdict.clone()));
            self.verdicts.len() as u32 - 1
        })
    }

    /// The verdict about the stack with this index in [`Dump::stacks`].
    pub fn get(&self, stack: usize) -> Option<&TypeVerdict> {
        self.shared(stack).map(|verdict| &**verdict)
    }

    /// The index of the innermost frame that names the stack's type; `None` if no frame names it.
    pub fn naming_frame(&self, stack: usize) -> Option<usize> {
        self.naming.get(stack).copied().flatten().map(|index| index as usize)
    }

    /// All verdicts, each once.
    pub(crate) fn verdicts(&self) -> impl Iterator<Item = &TypeVerdict> {
        self.verdicts.iter().map(|verdict| &**verdict)
    }

    /// The number of a stack's verdict. Stacks with equal numbers have equal verdicts.
    pub fn number(&self, stack: usize) -> Option<usize> {
        self.of_stacks.get(stack).map(|number| *number as usize)
    }

    pub(crate) fn shared(&self, stack: usize) -> Option<&Arc<TypeVerdict>> {
        self.of_stacks.get(stack).map(|id| &self.verdicts[*id as usize])
    }
}

/// Computes the facts of all frames. A second thread computes half of them.
fn facts(dump: &Dump) -> Vec<FrameFacts> {
    let ids: Vec<CallId> = dump.frames.ids().collect();
    let of = |ids: &[CallId]| -> Vec<FrameFacts> {
        ids.iter().map(|id| FrameFacts::new(&dump.frames.get(*id))).collect()
    };
    let (first, second) = ids.split_at(ids.len() / 2);
    thread::scope(|scope| {
        let helper = thread::Builder::new().spawn_scoped(scope, || of(second));
        let mut facts = of(first);
        facts.extend(match helper {
            Ok(helper) => helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => of(second),
        });
        facts
    })
}

impl Dump {
    /// The types of the blocks, by their allocation stacks.
    pub fn types(&self) -> TypeNames {
        TypeNames::new(self)
    }
}
