/* Frames of many shapes. The tests compile this several times, with and without frame pointers and at several levels
   of optimization; each function calls back into the test. */
#include <alloca.h>
#include <string.h>

typedef long (*next_t)(void *);

#define KEEP __attribute__((noinline, used))

/* Prevents the compiler from turning the call before this macro into a jump, and keeps locals alive. */
#define AFTER(value, place) __asm__ volatile("" : "+r"(value) : "r"(place) : "memory")

KEEP long small(next_t next, void *arg) {
  long result = next(arg);
  AFTER(result, &arg);
  return result + 1;
}

KEEP long large(next_t next, void *arg) {
  char block[20000];
  AFTER(arg, block);
  long result = next(arg);
  AFTER(result, block);
  return result + 1;
}

KEEP long registers(next_t next, void *arg, long a, long b, long c, long d) {
  long e = a * b, f = b * c, g = c * d, h = d * a, i = a ^ d;
  long result = next(arg);
  AFTER(result, &arg);
  return result + 1 + ((a + b + c + d + e + f + g + h + i) & 0);
}

KEEP long variable(next_t next, void *arg, long size) {
  char *block = alloca(size);
  AFTER(arg, block);
  long result = next(arg);
  AFTER(result, block);
  return result + 1;
}

KEEP long aligned(next_t next, void *arg) {
  __attribute__((aligned(128))) char block[256];
  AFTER(arg, block);
  long result = next(arg);
  AFTER(result, block);
  return result + 1;
}

KEEP long aligned_variable(next_t next, void *arg, long size) {
  __attribute__((aligned(64))) char block[64];
  char *more = alloca(size);
  AFTER(arg, block);
  AFTER(arg, more);
  long result = next(arg);
  AFTER(result, block);
  AFTER(result, more);
  return result + 1;
}

KEEP long many_arguments(next_t next, void *arg, long a, long b, long c, long d, long e, long f, long g) {
  long result = next(arg);
  AFTER(result, &arg);
  return result + 1 + ((a + b + c + d + e + f + g) & 0);
}

KEEP long pushes_arguments(next_t next, void *arg) {
  long result = many_arguments(next, arg, 1, 2, 3, 4, 5, 6, 7);
  AFTER(result, &arg);
  return result;
}

KEEP long both(next_t next, void *arg) {
  long result = registers(next, arg, 1, 2, 3, 4);
  AFTER(result, &arg);
  return result;
}

/* Frames that compilers do not generate: the CFA is relative to a register that callees may save anywhere, and one
   register is saved in another one. */
__asm__(
    ".text\n"
    ".globl from_rbx\n.type from_rbx, @function\nfrom_rbx:\n"
    ".cfi_startproc\n"
    "push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset %rbx, -16\n"
    "mov %rsp, %rbx\n.cfi_def_cfa_register %rbx\n"
    "sub $48, %rsp\n"
    "mov %rdi, %rax\nmov %rsi, %rdi\ncall *%rax\n"
    "mov %rbx, %rsp\n"
    "pop %rbx\n.cfi_def_cfa %rsp, 8\n.cfi_restore %rbx\n"
    "inc %rax\nret\n.cfi_endproc\n.size from_rbx, . - from_rbx\n"

    ".globl rbp_elsewhere\n.type rbp_elsewhere, @function\nrbp_elsewhere:\n"
    ".cfi_startproc\n"
    "push %r12\n.cfi_def_cfa_offset 16\n.cfi_offset %r12, -16\n"
    "mov %rbp, %r12\n.cfi_register %rbp, %r12\n"
    "mov $3, %ebp\n"
    "mov %rdi, %rax\nmov %rsi, %rdi\ncall *%rax\n"
    "mov %r12, %rbp\n.cfi_restore %rbp\n"
    "pop %r12\n.cfi_def_cfa_offset 8\n.cfi_restore %r12\n"
    "inc %rax\nret\n.cfi_endproc\n.size rbp_elsewhere, . - rbp_elsewhere\n"

    /* This function has no unwind information. */
    ".globl uncovered\n.type uncovered, @function\nuncovered:\n"
    "sub $24, %rsp\n"
    "mov %rdi, %rax\nmov %rsi, %rdi\ncall *%rax\n"
    "add $24, %rsp\n"
    "ret\n.size uncovered, . - uncovered\n"
    ".section .note.GNU-stack,\"\",@progbits\n"
    ".text\n");

long from_rbx(next_t next, void *arg);
long rbp_elsewhere(next_t next, void *arg);

KEEP long pass(int shape, next_t next, void *arg) {
  long result;
  switch (shape) {
  case 0: result = small(next, arg); break;
  case 1: result = large(next, arg); break;
  case 2: result = registers(next, arg, 1, 2, 3, 4); break;
  case 3: result = variable(next, arg, 100); break;
  case 4: result = variable(next, arg, 5000); break;
  case 5: result = aligned(next, arg); break;
  case 6: result = aligned_variable(next, arg, 333); break;
  case 7: result = pushes_arguments(next, arg); break;
  case 8: result = both(next, arg); break;
  case 9: result = from_rbx(next, arg); break;
  case 10: result = rbp_elsewhere(next, arg); break;
  default: result = small(next, arg); break;
  }
  AFTER(result, &arg);
  return result;
}
