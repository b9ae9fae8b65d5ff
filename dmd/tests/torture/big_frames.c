// Frames of 16 MiB, on the stack of a thread and on the main thread's stack. The program raises the limit of the main
// thread's stack for this.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static void *volatile kept;

__attribute__((noinline)) static void leaf(size_t size) { kept = malloc(size); }

__attribute__((noinline)) static void big(size_t size, int times) {
    volatile char frame[16 << 20];
    frame[0] = 1;
    frame[sizeof frame - 1] = 2;
    for (int i = 0; i < times; i++) leaf(size);
    frame[0] = frame[5];
}

__attribute__((noinline)) static void outer(size_t size) {
    leaf(size + 1);
    big(size, 1000);
    leaf(size + 2);
}

static void *in_thread(void *arg) {
    outer(4000);
    return arg;
}

int main(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_STACK, &limit);
    limit.rlim_cur = 64 << 20;
    if (setrlimit(RLIMIT_STACK, &limit) != 0) return 1;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 20);
    pthread_t thread;
    pthread_create(&thread, &attributes, in_thread, NULL);
    pthread_join(thread, NULL);
    outer(5000);
    puts("ok");
    return 0;
}
