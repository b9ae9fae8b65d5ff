// A signal's handler frees and allocates at any point of the program. Its stack is at higher addresses than the
// thread's stack. Only the handler has blocks of these sizes, and the C library needs no lock for them. Prints the
// number of blocks that the handler allocated. The argument is the number of signals.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *volatile kept;
static void *volatile other;
static volatile sig_atomic_t signals;
static volatile int blocks;
static int all = 4000;

static void handler(int number) {
    (void)number;
    free(kept);
    kept = malloc(1000);
    kept = realloc(kept, 1001);
    blocks += 2;
    signals++;
}

static void *work(void *stack) {
    sigaltstack(stack, NULL);
    // Keep one block for the handler, so that it always finds a block.
    void *spare = malloc(1000);
    kept = malloc(1000);
    free(spare);
    blocks += 2;
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART | SA_ONSTACK};
    sigaction(SIGALRM, &action, NULL);
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
    ualarm(150, 150);
    for (unsigned i = 0; signals < all; i++) {
        other = malloc(1 + i % 64);
        free(other);
    }
    pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    ualarm(0, 0);
    return NULL;
}

int main(int count, char **arguments) {
    if (count > 1) all = atoi(arguments[1]);
    char above[32 << 10];
    stack_t stack = {.ss_sp = above, .ss_size = sizeof above};
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    pthread_t thread;
    pthread_create(&thread, NULL, work, &stack);
    pthread_join(thread, NULL);
    printf("%d\n", blocks);
    return 0;
}
