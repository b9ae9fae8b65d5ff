// Like handler_forks.c, but the timer interrupts mostly calls of the allocator. The program has one thread, so the C
// library takes no locks.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t forks, failed;

static void on_timer(int number) {
    (void)number;
    pid_t child = fork();
    if (child == 0) _exit(6);
    int status = 0;
    waitpid(child, &status, 0);
    failed |= child < 0 || WEXITSTATUS(status) != 6;
    forks++;
}

int main(void) {
    struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval interval = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &interval, NULL);
    void *blocks[256] = {0};
    unsigned state = 0;
    while (forks < 300) {
        state = state * 1103515245 + 12345;
        int i = state >> 24;
        if (state & 65536) {
            blocks[i] = realloc(blocks[i], (state >> 8) % 9000 + 1);
        } else {
            free(blocks[i]);
            blocks[i] = malloc((state >> 8) % 300);
        }
    }
    struct itimerval none = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &none, NULL);
    puts(failed ? "failed" : "forked");
    return 0;
}
