//! Calls functions of the process on a stopped thread.
//!
//! When a [`CallingThread`] is dropped, the thread gets its registers, vector registers and blocked signals back. A
//! call ends with a jump to the address 0, where the thread stops; the process does not see that fault. The fault's
//! signal stays unblocked during the call: if it was blocked, the kernel would remove the process's handler of the
//! signal.

use core::ffi::c_int;
use std::io;

use crate::arch::{self, ThreadRegisters};
use crate::error::AttachError;
use crate::ptrace::{PriorityGuard, TraceEvent, TracedThread};
use crate::target::TargetProcess;

/// The signals of faults, which are not blocked during a call.
const FAULTS: [c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS];

/// A stopped thread that makes calls.
pub(crate) struct CallingThread<'t> {
    target: &'t TargetProcess,
    thread: TracedThread,
    registers: ThreadRegisters,
    vectors: Vec<u8>,
    mask: u64,
    /// The end of the free part of the thread's own stack.
    own_stack: u64,
    /// The end of the stack that the next call uses.
    stack: u64,
    is_alive: bool,
    /// The thread runs before others during the calls, if the system allows it.
    _priority: PriorityGuard,
}

impl<'t> CallingThread<'t> {
    pub(crate) fn new(target: &'t TargetProcess, thread: TracedThread) -> io::Result<Self> {
        let priority = PriorityGuard::for_thread(thread.number());
        let registers = thread.registers()?;
        let vectors = thread.vectors()?;
        let mask = thread.mask()?;
        let faults = FAULTS.iter().fold(0_u64, |bits, signal| bits | 1 << (signal - 1));
        thread.set_mask(!faults)?;
        let stack = (arch::stack_pointer(&registers) - arch::RED_ZONE) & !15;
        Ok(Self {
            target,
            thread,
            registers,
            vectors,
            mask,
            own_stack: stack,
            stack,
            is_alive: true,
            _priority: priority,
        })
    }

    /// The address of the thread's own data, if the registers contain it.
    pub(crate) fn thread_pointer(&self) -> Option<u64> {
        arch::thread_pointer(&self.registers)
    }

    /// Makes later calls use the stack that ends at this address.
    pub(crate) fn use_stack(&mut self, end: u64) {
        // A function may read the memory of stack arguments, even if the call passes none.
        const ARGUMENTS: u64 = 128;
        self.stack = (end & !15) - ARGUMENTS;
    }

    /// Calls a function on the thread's own stack.
    pub(crate) fn call_on_first_stack(
        &mut self,
        function: u64,
        arguments: &[u64],
    ) -> Result<u64, AttachError> {
        self.stack = self.own_stack;
        self.call(function, arguments)
    }

    /// Calls a function, and returns its result.
    pub(crate) fn call(&mut self, function: u64, arguments: &[u64]) -> Result<u64, AttachError> {
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        let (registers, top) = arch::for_call(&self.registers, function, self.stack, all);
        self.target.write(top, &0_u64.to_le_bytes())?;
        self.thread.set_registers(&registers)?;
        self.thread.forget_system_call()?;
        loop {
            match self.thread.go_on() {
                // A request to stop the process waits until the thread has its registers back.
                Ok(TraceEvent::Stopped | TraceEvent::GroupStopped) => {}
                Ok(TraceEvent::Signal(signal)) => {
                    let after = self.thread.registers()?;
                    if signal == libc::SIGSEGV && arch::pc(&after) == 0 {
                        return Ok(arch::result(&after));
                    }
                    if !FAULTS.contains(&signal) || !self.thread.is_own_fault() {
                        // The thread cannot block SIGSTOP, so this signal can arrive. The thread gets it after the
                        // calls.
                        self.thread.keep_signal(signal);
                    } else {
                        let what = match signal {
                            libc::SIGSYS => "a filter of system calls stopped the call".to_owned(),
                            _ => format!(
                                "a call in the process failed with signal {signal} at {:#x}",
                                arch::pc(&after)
                            ),
                        };
                        return Err(AttachError::Failed(format!(
                            "{what}; the thread continues where it was"
                        )));
                    }
                }
                Ok(TraceEvent::Ended) | Err(_) => {
                    self.is_alive = false;
                    return Err(AttachError::Ended);
                }
            }
        }
    }
}

impl Drop for CallingThread<'_> {
    fn drop(&mut self) {
        if self.is_alive {
            // An error means that the process has been killed.
            let _ = self.thread.set_vectors(&self.vectors);
            let _ = self.thread.set_registers(&self.registers);
            let _ = self.thread.set_mask(self.mask);
        }
    }
}
