// A timer's handler runs again and again on a small alternate stack. Between allocations the program raises a signal
// whose handler allocates. Threads have the smallest stacks.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

static volatile sig_atomic_t ticks, raised;
static void *volatile kept;

static void on_timer(int number) { (void)number; ticks++; }
static void on_raise(int number) {
    (void)number;
    free(kept);
    kept = malloc(300);
    raised++;
}

static void *small(void *arg) {
    for (int i = 0; i < 2000; i++) free(malloc((size_t)i));
    return arg;
}

int main(void) {
    stack_t stack = {.ss_sp = malloc(16384), .ss_size = 16384};
    sigaltstack(&stack, NULL);
    struct sigaction timer = {.sa_handler = on_timer, .sa_flags = SA_ONSTACK | SA_RESTART};
    struct sigaction raise_action = {.sa_handler = on_raise, .sa_flags = SA_ONSTACK};
    sigaction(SIGALRM, &timer, NULL);
    sigaction(SIGUSR1, &raise_action, NULL);
    struct itimerval interval = {{0, 500}, {0, 500}};
    setitimer(ITIMER_REAL, &interval, NULL);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 32768);
    for (int round = 0; round < 20; round++) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, small, NULL) != 0) return 1;
        for (int i = 0; i < 200; i++) {
            void *block = malloc((size_t)i * 7);
            raise(SIGUSR1);
            free(block);
        }
        pthread_join(thread, NULL);
    }
    // Wait until the timer has run.
    while (ticks < 3) free(malloc(10));
    struct itimerval none = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &none, NULL);
    printf("%d\n", (int)raised);
    return 0;
}
