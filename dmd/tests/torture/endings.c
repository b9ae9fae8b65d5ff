// Children that end in every way while threads continue to allocate.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void *work(void *arg) {
    for (;;) free(malloc(64));
    return arg;
}

static void at_end(void) { free(malloc(10)); }

static void end(int way) {
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    atexit(at_end);
    switch (way) {
        case 0: exit(3);
        case 1: _exit(4);
        case 2: abort();
        case 3: raise(SIGSEGV); break;
        case 4: quick_exit(5);
        case 5: close(0), close(1), close(2), exit(6);
        case 6: kill(getpid(), SIGKILL); break;
        case 7: chdir("/nowhere"), clearenv(), exit(8);
        case 8: pthread_exit(NULL);
    }
    pause();
}

int main(void) {
    for (int way = 0; way < 8; way++) {
        pid_t child = fork();
        if (child == 0) end(way);
        int status;
        waitpid(child, &status, 0);
        if (WIFEXITED(status)) printf("%d: exit %d\n", way, WEXITSTATUS(status));
        else printf("%d: signal %d\n", way, WTERMSIG(status));
    }
    return 0;
}
