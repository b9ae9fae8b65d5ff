// Steps through calls of the allocator, and jumps out of the library at many of its instructions. Then the calls that follow
// must work.
#define _GNU_SOURCE
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

// A large block lets the thread settle.
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
    // Not out of the C library, which is called from the library: its heap would not be whole.
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
        // The first call goes on to its end.
        last = call == 0 ? -1 : 1 + (state >> 8) % most;
        steps = 0;
        // The library has met the frames before it is stepped through.
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
    // Without the library there is nothing to jump out of.
    return low != 0 && jumps == 0;
}
