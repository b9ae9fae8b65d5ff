// A program that SIGTERM or SIGINT ends. Usage: ended HOW [BLOCKS]. It prints `ready`.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile int asked;
static void ends(int signal) { asked = 1; }

static void exits(int signal) { _exit(5); }

static void cleans_up(int number) {
    // A program that has cleaned up restores the default action, so that the same signal ends it.
    signal(number, SIG_DFL);
    raise(number);
}

static void *work(void *arg) {
    for (;;) free(malloc(64));
    return arg;
}

// The program must not see the library's handler.
static int sees_default(int number) {
    struct sigaction found;
    return sigaction(number, NULL, &found) == 0 && found.sa_handler == SIG_DFL && found.sa_flags == 0;
}

int main(int count, char **arguments) {
    const char *how = arguments[1];
    static void *volatile blocks[1000];
    for (int at = 0; at < 1000; at++) blocks[at] = malloc(77);
    for (int at = 0, many = count > 2 ? atoi(arguments[2]) : 0; at < many; at++) *(volatile char *)malloc(200) = 1;
    if (!strcmp(how, "ends_deaf")) signal(SIGTERM, SIG_IGN), signal(SIGINT, SIG_IGN);
    if (!strcmp(how, "ends_later")) signal(SIGTERM, ends), signal(SIGINT, ends);
    if (strcmp(how, "ignores") && strncmp(how, "ends_", 5) && !(sees_default(SIGTERM) && sees_default(SIGINT))) return 3;
    if (!strcmp(how, "handles")) {
        if (signal(SIGINT, exits) != SIG_DFL) return 4;
        struct sigaction action = {.sa_handler = exits}, before;
        if (sigaction(SIGTERM, &action, &before) || before.sa_handler != SIG_DFL) return 4;
        if (signal(SIGINT, exits) != exits) return 4;
    }
    if (!strcmp(how, "cleans")) signal(SIGTERM, cleans_up), signal(SIGINT, cleans_up);
    if (!strcmp(how, "returns")) {
        signal(SIGTERM, exits), signal(SIGINT, exits);
        if (signal(SIGTERM, SIG_DFL) != exits || signal(SIGINT, SIG_DFL) != exits) return 4;
        if (!sees_default(SIGTERM) || !sees_default(SIGINT)) return 4;
    }
    if (!strcmp(how, "threads"))
        for (int at = 0; at < 3; at++) pthread_create(&(pthread_t){0}, NULL, work, NULL);
    puts("ready");
    fflush(stdout);
    if (!strcmp(how, "busy") || !strcmp(how, "threads")) work(NULL);
    if (!strcmp(how, "ends") || !strcmp(how, "ends_deaf")) return 7;
    if (!strcmp(how, "ends_later")) {
        while (!asked) usleep(1000);
        return 7;
    }
    if (!strcmp(how, "ignores")) return getchar() == EOF ? 0 : 6;
    // Rust's standard library waits like this: through the C library's function for system calls.
    if (!strcmp(how, "parks")) for (int word = 0;;) syscall(SYS_futex, &word, 0, 0, NULL);
    for (;;) pause();
}
