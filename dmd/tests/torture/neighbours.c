// Coroutines whose stacks are next to each other, right below the thread's control block. One stack is unmapped.
// The first function of a coroutine has no caller, like the first function of a thread.
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __x86_64__
#define SIZE (16 << 10)

void switch_stacks(void **from, void *to);
void entry(void);
__asm__(".text\n.globl switch_stacks\n.type switch_stacks,@function\nswitch_stacks:\n.cfi_startproc\n"
        "push %rbp\n.cfi_adjust_cfa_offset 8\npush %rbx\n.cfi_adjust_cfa_offset 8\n"
        "push %r12\n.cfi_adjust_cfa_offset 8\nmov %rsp,(%rdi)\nmov %rsi,%rsp\n"
        "pop %r12\n.cfi_adjust_cfa_offset -8\npop %rbx\n.cfi_adjust_cfa_offset -8\n"
        "pop %rbp\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n.size switch_stacks,.-switch_stacks\n"
        ".globl entry\n.type entry,@function\nentry:\n.cfi_startproc\n.cfi_undefined %rip\nnop\n"
        "call *%r12\nhlt\n.cfi_endproc\n.size entry,.-entry\n");

static void *outside, *first, *second;
static char *upper, *lower;

__attribute__((noinline)) static void in_upper(void) {
    for (int i = 0; i < 3; i++) {
        void *volatile block = malloc(100);
        (void)block;
    }
    switch_stacks(&first, second);
    for (;;) {}
}

__attribute__((noinline)) static void in_lower(void) {
    void *volatile block = malloc(50);
    block = malloc(51);
    switch_stacks(&second, first);
    munmap(upper, SIZE);
    block = malloc(100);
    switch_stacks(&second, outside);
}

static void *start(char *stack, void (*function)(void)) {
    void **top = (void **)(stack + SIZE - 64);
    top[3] = (void *)entry;
    top[2] = top[1] = NULL;
    top[0] = (void *)function;
    return top;
}

static char *map(char *place) {
    return mmap(place, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

int main(void) {
    unsigned long pointer;
    __asm__("mov %%fs:0,%0" : "=r"(pointer));
    char *top = (char *)(pointer & ~4095UL);
    for (int i = 0; i < 64; i++, top -= 4096) {
        upper = map(top - SIZE);
        if (upper == MAP_FAILED) continue;
        lower = map(upper - SIZE);
        if (lower != MAP_FAILED) break;
        munmap(upper, SIZE);
    }
    if (upper != MAP_FAILED && lower != MAP_FAILED) {
        first = start(upper, in_upper);
        second = start(lower, in_lower);
        switch_stacks(&outside, second);
    }
    write(1, "ok\n", 3);
    return 0;
}
#else
int main(void) {
    write(1, "ok\n", 3);
    return 0;
}
#endif
