// Deep recursion that allocates at each level, coroutines on separate stacks, and threads that are cancelled.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

static void *volatile sink;

__attribute__((noinline)) static int down(int depth) {
    void *block = malloc(32);
    int result = depth == 0 ? 0 : down(depth - 1) + 1;
    free(block);
    return result;
}

static ucontext_t main_context, other;

static void coroutine(void) {
    for (int i = 0; i < 100; i++) {
        free(malloc((size_t)i * 10));
        swapcontext(&other, &main_context);
    }
}

static void *until_cancelled(void *arg) {
    for (;;) {
        free(malloc(100));
        pthread_testcancel();
    }
    return arg;
}

int main(void) {
    printf("%d\n", down(20000));
    for (int round = 0; round < 50; round++) {
        size_t size = 65536;
        char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        getcontext(&other);
        other.uc_stack.ss_sp = stack;
        other.uc_stack.ss_size = size;
        other.uc_link = &main_context;
        makecontext(&other, coroutine, 0);
        for (int i = 0; i < 100; i++) swapcontext(&main_context, &other);
        munmap(stack, size);
        sink = malloc(10);
    }
    for (int round = 0; round < 100; round++) {
        pthread_t thread;
        pthread_create(&thread, NULL, until_cancelled, NULL);
        if (round % 10 == 0) usleep(1000);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
    }
    puts("done");
    return 0;
}
