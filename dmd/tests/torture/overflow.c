// Recovers from overflows of the stack by siglongjmp, as gawk, emacs and OCaml do; then keeps 1,000 blocks of 777
// bytes. Usage: overflow WAY ROUNDS. The stack belongs to the main thread, to another thread, to a coroutine, or to a
// thread that has used the stack before a page in its middle becomes inaccessible.
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

static sigjmp_buf place;
static char other[64 << 10];
static void *volatile kept;
static int rounds, overflows;

static void handler(int number) {
    (void)number;
    siglongjmp(place, 1);
}

__attribute__((noinline)) static int down(int depth) {
    volatile char frame[40];
    frame[0] = (char)depth;
    void *volatile block = malloc(24);
    free(block);
    return (depth == 0 ? 0 : down(depth - 1)) + frame[0];
}

static void on_other_stack(void) {
    stack_t stack = {.ss_sp = other, .ss_size = sizeof other};
    sigaltstack(&stack, NULL);
}

// The depth differs in each round, so that the stack ends at many places in the library.
static void overflow(void) {
    for (volatile int i = 0; i < rounds; i++) {
        char *volatile room = alloca(i % 97 * 16 + 16);
        room[0] = 1;
        if (sigsetjmp(place, 1) == 0) down(1 << 30);
        overflows++;
    }
}

__attribute__((noinline)) static void keep(void) {
    for (int i = 0; i < 1000; i++) kept = malloc(777);
}

static void *in_thread(void *taken) {
    on_other_stack();
    if (taken) {
        down(2000);
        char *page = (char *)(((unsigned long)&taken - 100000) & ~4095UL);
        mprotect(page, 4096, PROT_NONE);
        overflow();
        mprotect(page, 4096, PROT_READ | PROT_WRITE);
    } else {
        overflow();
    }
    keep();
    return NULL;
}

static ucontext_t outside, inside;
static void coroutine(void) { down(1 << 30); }

int main(int count, char **arguments) {
    if (count < 3) return 1;
    int way = atoi(arguments[1]);
    rounds = atoi(arguments[2]);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaction(SIGSEGV, &action, NULL);
    on_other_stack();
    if (way == 0) {
        struct rlimit limit;
        getrlimit(RLIMIT_STACK, &limit);
        limit.rlim_cur = 512 << 10;
        setrlimit(RLIMIT_STACK, &limit);
        overflow();
        keep();
    } else if (way < 3) {
        pthread_t thread;
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, 512 << 10);
        pthread_create(&thread, &attributes, in_thread, way == 2 ? &way : NULL);
        pthread_join(thread, NULL);
    } else {
        for (volatile int i = 0; i < rounds; i++) {
            size_t size = 65536 - (size_t)(i % 97) * 16;
            char *stack = mmap(NULL, 65536 + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            mprotect(stack, 4096, PROT_NONE);
            getcontext(&inside);
            inside.uc_stack.ss_sp = stack + 4096;
            inside.uc_stack.ss_size = size;
            makecontext(&inside, coroutine, 0);
            if (sigsetjmp(place, 1) == 0) swapcontext(&outside, &inside);
            munmap(stack, 65536 + 4096);
            overflows++;
        }
        keep();
    }
    printf("%d overflows\n", overflows);
    return 0;
}
