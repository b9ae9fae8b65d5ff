// Single-steps through calls of the allocator, and jumps out of the library at many of its instructions. The calls
// after the jumps must work.
#define _GNU_SOURCE
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

// A block of this size makes the thread settle its pending events.
enum { LARGE = 2 << 20 };

static sigjmp_buf out;
static unsigned long low, high;
static long steps, last, jumps;

static int find(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size, (void)data;
    if (!strstr(info->dlpi_name, "libdmd")) return 0;
    low = ~0ul;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
        unsigned long start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (start < low) low = start;
        if (start + info->dlpi_phdr[i].p_memsz > high) high = start + info->dlpi_phdr[i].p_memsz;
    }
    return 1;
}

static void on_step(int number, siginfo_t *info, void *context) {
    (void)number, (void)info;
    unsigned long pc = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    // Do not jump out of the C library, which this library calls: its heap would become inconsistent.
    if (pc < low || pc >= high || ++steps != last) return;
    jumps++;
    siglongjmp(out, 1);
}

static void set_trap(int on) {
    if (on) {
        __asm__ volatile("sub $128, %%rsp\n pushfq\n orq $256, (%%rsp)\n popfq\n add $128, %%rsp" ::: "memory", "cc");
    } else {
        __asm__ volatile("sub $128, %%rsp\n pushfq\n andq $-257, (%%rsp)\n popfq\n add $128, %%rsp" ::: "memory", "cc");
    }
}

__attribute__((noinline)) static void *take(int steps) {
    if (steps) set_trap(1);
    void *volatile block = malloc(LARGE);
    if (steps) set_trap(0);
    return block;
}

// The argument is the number of calls.
int main(int count, char **arguments) {
    int calls = count > 1 ? atoi(arguments[1]) : 0;
    dl_iterate_phdr(find, NULL);
    struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
    alarm(100);
    unsigned state = 1;
    long most = 1;
    for (volatile int call = 0; call < calls; call++) {
        state = state * 1103515245 + 12345;
        // The first call runs to its end.
        last = call == 0 ? -1 : 1 + (state >> 8) % most;
        steps = 0;
        // Turn 0 runs without single steps: during this turn the library walks the frames for the first time.
        if (sigsetjmp(out, 1) == 0) {
            for (volatile int turn = 0; turn < 2; turn++) take(turn);
        }
        if (call == 0) most = steps + 1;
    }
    for (int i = 0; i < 1000; i++) {
        void *volatile block = malloc(7771);
        (void)block;
    }
    puts("jumped");
    // Without the library the program must not jump.
    return low != 0 && jumps == 0;
}
