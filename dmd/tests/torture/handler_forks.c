// A timer's handler forks at any point of the program. The children end at once.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t forks, failed;
static void *volatile blocks[64];

static void on_timer(int number) {
    (void)number;
    pid_t child = fork();
    if (child == 0) _exit(3);
    int status = 0;
    waitpid(child, &status, 0);
    failed |= child < 0 || WEXITSTATUS(status) != 3;
    forks++;
}

__attribute__((noinline)) static void work(int depth, unsigned i) {
    if (depth > 0) {
        work(depth - 1, i);
    } else {
        free(blocks[i % 64]);
        blocks[i % 64] = malloc(i % 700 + 1);
    }
    // Prevents the compiler from turning the last call above into a jump.
    blocks[0] = blocks[0];
}

int main(void) {
    struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval interval = {{0, 700}, {0, 700}};
    setitimer(ITIMER_REAL, &interval, NULL);
    for (unsigned i = 0; forks < 300; i++) work((int)(i % 50), i);
    struct itimerval none = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &none, NULL);
    puts(failed ? "failed" : "forked");
    return 0;
}
