//! The types of blocks, from their allocation stacks alone.
//!
//! Names of functions contain the types that they were compiled for. The innermost library function on a stack that
//! has the element's type among them names the block: `RawVec<app::Job>::grow_one` allocates `[app::Job]`. Where no
//! function contains the type, the verdict is the function that allocated: never a guess.
//!
//! ```text
//! generics   a function's name -> path, types
//! rules      library functions -> how the type follows, as data
//! role       a frame -> its role, by the rules
//! verdict    a stack's roles -> a type, or a function
//! spelling   types as programmers write them
//! ```
//!
//! A type may change without an allocation: an in-place `collect` reuses the block of another element type, and
//! `String::into_bytes` that of a string. The verdict is the type at the last allocation.

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

/// How a block consists of values of its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BlockShape {
    /// One value, such as that of a `Box`, an `ArcInner` or a node of a map.
    One,
    /// Room for any number of elements: the buffer of a `Vec`, a `VecDeque` or a `String`.
    Slice,
    /// The elements of a boxed slice.
    BoxedSlice,
    /// A hash table: entries, and a byte of control data for each.
    Table,
}

/// The verdicts about the stacks of a dump, each computed once.
#[derive(Debug, Default)]
pub struct TypeNames {
    /// The index of each stack's verdict.
    of_stacks: Vec<u32>,
    /// The index of the frame that names the type of each stack.
    naming: Vec<Option<u32>>,
    verdicts: Vec<Arc<TypeVerdict>>,
}

impl TypeNames {
    /// Computes the verdicts. The dump's frames must have been looked up, for example by
    /// `Dump::symbolize`.
    pub fn new(dump: &Dump) -> Self {
        let facts = facts(dump);
        let mut ids: FxHashMap<TypeVerdict, u32> = FxHashMap::default();
        // The verdicts about stacks that have no type, by the frame that allocated.
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

    /// The verdict about a stack, by its index in [`Dump::stacks`].
    pub fn get(&self, stack: usize) -> Option<&TypeVerdict> {
        self.shared(stack).map(|verdict| &**verdict)
    }

    /// The index of the innermost frame that names a stack's type.
    pub fn naming_frame(&self, stack: usize) -> Option<usize> {
        self.naming.get(stack).copied().flatten().map(|index| index as usize)
    }

    /// All verdicts, each once.
    pub(crate) fn verdicts(&self) -> impl Iterator<Item = &TypeVerdict> {
        self.verdicts.iter().map(|verdict| &**verdict)
    }

    /// A number of a stack's verdict. Stacks with equal numbers have equal verdicts.
    pub fn number(&self, stack: usize) -> Option<usize> {
        self.of_stacks.get(stack).map(|number| *number as usize)
    }

    pub(crate) fn shared(&self, stack: usize) -> Option<&Arc<TypeVerdict>> {
        self.of_stacks.get(stack).map(|id| &self.verdicts[*id as usize])
    }
}

/// The facts of all frames, half of them from another thread.
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
