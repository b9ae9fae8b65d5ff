// Children that end on stacks with hardly any room, in a thread with a pending cancellation, and in the handler of a
// signal that interrupts an allocation. Each child keeps a block of 8,001 bytes.
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static void *volatile kept;

// Makes a stack with an unreadable page below it.
static char *stack_of(size_t size) {
    char *start = mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(start, 4096, PROT_NONE);
    return start + 4096;
}

static void *in_thread(void *arg) {
    exit(3);
    return arg;
}
static void in_coroutine(void) { exit(4); }
static void in_handler(int number) {
    (void)number;
    exit(5);
}
__attribute__((noinline)) static int down(int depth) {
    volatile char frame[64] = {0};
    return down(depth + 1) + frame[0];
}

static void end(int way) {
    kept = malloc(8001);
    stack_t stack = {.ss_sp = stack_of(8192), .ss_size = 8192};
    struct sigaction action = {.sa_handler = in_handler, .sa_flags = SA_ONSTACK};
    if (way == 0) {
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN);
        pthread_t thread;
        pthread_create(&thread, &attributes, in_thread, NULL);
        pause();
    } else if (way == 1) {
        ucontext_t context;
        getcontext(&context);
        context.uc_stack.ss_sp = stack_of(16384);
        context.uc_stack.ss_size = 16384;
        context.uc_link = NULL;
        makecontext(&context, in_coroutine, 0);
        setcontext(&context);
    } else if (way == 2) {
        sigaltstack(&stack, NULL);
        sigaction(SIGSEGV, &action, NULL);
        down(0);
    } else if (way == 3) {
        pthread_cancel(pthread_self());
        exit(6);
    } else {
        action.sa_flags = 0;
        sigaction(SIGALRM, &action, NULL);
        ualarm((useconds_t)(15000 + way * 17), 0);
        for (;;) free(malloc(100));
    }
}

int main(void) {
    for (int way = 0; way < 15; way++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) end(way);
        int status;
        waitpid(child, &status, 0);
        printf("%d: %x\n", way, status);
    }
    return 0;
}
