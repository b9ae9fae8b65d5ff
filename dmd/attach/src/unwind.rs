//! The frames of a stopped thread, from its registers and the unwind tables in its memory.

use gimli::{CfaRule, EhFrame, RegisterRule, UnwindContext, UnwindSection as _};

use crate::arch::{self, REGISTERS, RETURN_ADDRESS, STACK_POINTER, ThreadRegisters};
use crate::object::LoadedObject;
use crate::target::TargetProcess;

/// The largest number of frames of a walk.
const MOST: usize = 1024;

/// A frame of a stopped thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoppedFrame {
    /// An address in the frame's function: the next instruction for the innermost frame, and the address before the
    /// return address for other frames.
    pub(crate) code: u64,
    /// The index of the object; `None` for code outside of objects.
    pub(crate) object: Option<usize>,
    /// Whether this frame is the code to which a signal handler returns: the frames before it belong to the handler.
    pub(crate) is_signal: bool,
}

/// The frames of a thread.
#[derive(Debug)]
pub(crate) struct StoppedStack {
    pub(crate) frames: Vec<StoppedFrame>,
    /// The stack pointer at which the walk could not go on; `None` if it reached the outermost frame.
    pub(crate) lost_at: Option<u64>,
}

/// The result of a step: the next frame, the end, or code without a usable rule.
enum UnwindStep {
    Caller,
    End,
    Lost,
}

pub(crate) fn walk(
    target: &TargetProcess,
    objects: &[LoadedObject],
    registers: &ThreadRegisters,
) -> StoppedStack {
    let mut known = arch::by_dwarf(registers);
    let mut code = arch::pc(registers);
    let mut frames = Vec::new();
    let mut context = UnwindContext::new();
    loop {
        let object = objects.iter().position(|object| object.has_code_at(code));
        let stack = known[usize::from(STACK_POINTER.0)];
        frames.push(StoppedFrame { code, object, is_signal: false });
        let step = match object {
            Some(object) => step(target, &objects[object], code, &mut known, &mut context, &mut frames),
            None => UnwindStep::Lost,
        };
        let after = known[usize::from(STACK_POINTER.0)];
        match step {
            UnwindStep::End => return StoppedStack { frames, lost_at: None },
            UnwindStep::Caller if frames.len() < MOST && (after > stack || frames.len() == 1) => {}
            _ => return StoppedStack { frames, lost_at: Some(stack.unwrap_or(0)) },
        }
        match known[usize::from(RETURN_ADDRESS.0)] {
            None | Some(0) => return StoppedStack { frames, lost_at: None },
            Some(caller) => code = arch::code_address(caller).wrapping_sub(1),
        }
    }
}

fn step(
    target: &TargetProcess,
    object: &LoadedObject,
    code: u64,
    known: &mut [Option<u64>; REGISTERS],
    context: &mut UnwindContext<usize>,
    frames: &mut [StoppedFrame],
) -> UnwindStep {
    let Some(tables) = object.tables(target) else { return UnwindStep::Lost };
    let section = tables.frames();
    let header = tables.header();
    let fde = header.as_ref().and_then(|header| {
        header.table()?.fde_for_address(&section, &tables.bases, code, EhFrame::cie_from_offset).ok()
    });
    let Some(fde) = fde else { return UnwindStep::Lost };
    if let Some(frame) = frames.last_mut() {
        frame.is_signal = fde.is_signal_trampoline();
    }
    let Ok(row) = fde.unwind_info_for_address(&section, &tables.bases, context, code) else {
        return UnwindStep::Lost;
    };
    let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else { return UnwindStep::Lost };
    let base = known.get(usize::from(register.0)).copied().flatten();
    let Some(base) = base else { return UnwindStep::Lost };
    let end = base.wrapping_add_signed(*offset);
    let before = *known;
    for (register, rule) in row.registers() {
        let Some(place) = known.get_mut(usize::from(register.0)) else { continue };
        *place = match rule {
            RegisterRule::Offset(offset) => target.word(end.wrapping_add_signed(*offset)),
            RegisterRule::ValOffset(offset) => Some(end.wrapping_add_signed(*offset)),
            RegisterRule::Register(other) => before.get(usize::from(other.0)).copied().flatten(),
            RegisterRule::SameValue => *place,
            RegisterRule::Undefined if *register == RETURN_ADDRESS => return UnwindStep::End,
            _ => None,
        };
    }
    known[usize::from(STACK_POINTER.0)] = Some(end);
    UnwindStep::Caller
}
