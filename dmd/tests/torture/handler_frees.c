// A signal's handler frees and allocates at any point of the program. Only the handler has blocks of these sizes, and
// the C library needs no lock for them. The argument is the number of signals.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *volatile kept;
static void *volatile other;
static volatile sig_atomic_t signals;

static void handler(int number) {
    (void)number;
    free(kept);
    kept = malloc(1000);
    kept = realloc(kept, 1001);
    signals++;
}

int main(int count, char **arguments) {
    int all = count > 1 ? atoi(arguments[1]) : 5000;
    // Keep one block for the handler, so that it always finds a block.
    void *spare = malloc(1000);
    kept = malloc(1000);
    free(spare);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    ualarm(150, 150);
    for (unsigned i = 0; signals < all; i++) {
        other = malloc(1 + i % 64);
        free(other);
    }
    ualarm(0, 0);
    signal(SIGALRM, SIG_IGN);
    puts("done");
    return 0;
}
