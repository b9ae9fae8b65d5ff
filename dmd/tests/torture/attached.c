// Does everything that an attachment could disturb, on 16 threads, until it gets SIGUSR2: allocates and frees, sleeps,
// polls, waits for conditions, reads a pipe, waits for events, forks, sends signals to itself, loads and unloads
// a library. Then it prints "errors N" and ends. Each error is a line on standard output.
//
// With an argument, one thread allocates blocks of a size that no other code uses. On SIGUSR1 it replaces all of them,
// prints "live N BYTES", and waits for the next SIGUSR1.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static atomic_int ends, errors, handled;
static int pipes[2];

static void fail(const char *what) {
    int error = errno;
    char line[200];
    int length = snprintf(line, sizeof line, "%s: errno %d\n", what, error);
    write(1, line, length);
    errors++;
}

static void handler(int signal) {
    handled++;
    (void)signal;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static void *allocates(void *argument) {
    void *blocks[256] = {0};
    unsigned seed = (unsigned)(size_t)argument;
    while (!ends) {
        unsigned at = rand_r(&seed) % 256;
        blocks[at] = realloc(blocks[at], rand_r(&seed) % 5000 + 1);
        memset(blocks[at], 1, 1);
        at = rand_r(&seed) % 256;
        free(blocks[at]);
        blocks[at] = 0;
        if (seed % 64 == 0) usleep(100);
    }
    for (int i = 0; i < 256; i++) free(blocks[i]);
    return 0;
}

static void *sleeps(void *argument) {
    (void)argument;
    while (!ends) {
        double start = now();
        struct timespec time = {0, 30000000};
        if (nanosleep(&time, 0)) fail("nanosleep");
        if (now() - start < 0.0299) fail("nanosleep was short");
    }
    return 0;
}

static void *polls(void *argument) {
    (void)argument;
    while (!ends) {
        double start = now();
        if (poll(0, 0, 40) != 0) fail("poll");
        if (now() - start < 0.039) fail("poll was short");
        struct timeval time = {0, 20000};
        if (select(0, 0, 0, 0, &time) != 0) fail("select");
    }
    return 0;
}

static void *reads(void *argument) {
    (void)argument;
    char byte;
    while (!ends) {
        if (read(pipes[0], &byte, 1) != 1) fail("read");
    }
    return 0;
}

static void *writes(void *argument) {
    (void)argument;
    while (!ends) {
        usleep(15000);
        if (write(pipes[1], "x", 1) != 1) fail("write");
    }
    write(pipes[1], "x", 1);
    return 0;
}

static void *waits_for_events(void *argument) {
    (void)argument;
    int events = epoll_create1(0);
    struct epoll_event event;
    while (!ends) {
        if (epoll_wait(events, &event, 1, 25) != 0) fail("epoll_wait");
    }
    close(events);
    return 0;
}

static void *waits_for_condition(void *argument) {
    (void)argument;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    pthread_mutex_lock(&mutex);
    while (!ends) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 20000000;
        if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
        int result = pthread_cond_timedwait(&condition, &mutex, &until);
        if (result != ETIMEDOUT && result != 0) errno = result, fail("pthread_cond_timedwait");
    }
    return 0;
}

static void *forks(void *argument) {
    (void)argument;
    while (!ends) {
        pid_t child = fork();
        if (child == 0) {
            for (int i = 0; i < 100; i++) free(malloc(i + 1));
            _exit(7);
        }
        int status;
        if (child < 0) fail("fork");
        else if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7) fail("waitpid");
        usleep(5000);
    }
    return 0;
}

static void *nothing(void *argument) {
    free(malloc(100));
    return argument;
}

static void *starts_threads(void *argument) {
    (void)argument;
    while (!ends) {
        pthread_t thread;
        if (pthread_create(&thread, 0, nothing, 0)) fail("pthread_create");
        else pthread_join(thread, 0);
        usleep(1000);
    }
    return 0;
}

static void *loads(void *argument) {
    (void)argument;
    while (!ends) {
        void *library = dlopen("libm.so.6", RTLD_NOW);
        if (!library || !dlsym(library, "cbrt")) fail("dlopen");
        if (library) dlclose(library);
        usleep(2000);
    }
    return 0;
}

// Only this thread gets SIGALRM, so that system calls of the others are not interrupted.
static void *gets_signals(void *argument) {
    (void)argument;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &set, 0);
    volatile double sum = 0;
    while (!ends) {
        int before = handled;
        pthread_kill(pthread_self(), SIGALRM);
        if (handled != before + 1) fail("signal");
        for (int i = 0; i < 100000; i++) sum += i;
        char *text = malloc(50);
        snprintf(text, 50, "%g", sum);
        free(text);
        usleep(500);
    }
    return 0;
}

static void *computes(void *argument) {
    (void)argument;
    while (!ends) {
        double sum = 0;
        for (int i = 0; i < 2000000; i++) sum += 1.0 / (i + 1);
        if (sum < 15.0858 || sum > 15.0859) fail("sum");
    }
    return 0;
}

#define LIVE 4096
static void *live[LIVE];

static int counts(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, 0);
    unsigned at = 0;
    struct timespec wait = {0, 100000};
    for (;;) {
        for (int i = 0; i < 100; i++, at++) {
            free(live[at % LIVE]);
            live[at % LIVE] = at % 3 ? malloc(7001) : 0;
        }
        int signal = sigtimedwait(&set, 0, &wait);
        if (signal == SIGUSR1) {
            // From here on, all blocks of this size are new ones.
            for (int i = 0; i < LIVE; i++) free(live[i]), live[i] = malloc(7001);
            printf("live %d %d\n", LIVE, LIVE * 7001);
            fflush(stdout);
            sigwait(&set, &signal);
            if (signal == SIGUSR1) printf("goes on\n"), fflush(stdout);
        }
        if (signal == SIGUSR2) return 0;
    }
}

int main(int count, char **words) {
    if (count > 1) return counts();
    setvbuf(stdout, 0, _IONBF, 0);
    pipe(pipes);
    signal(SIGALRM, handler);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, 0);
    void *(*bodies[])(void *) = {
        allocates, allocates, allocates, allocates, sleeps, polls, reads, writes, waits_for_events,
        waits_for_condition, forks, starts_threads, loads, gets_signals, computes, allocates,
    };
    pthread_t threads[16];
    for (size_t i = 0; i < 16; i++) pthread_create(&threads[i], 0, bodies[i], (void *)(i + 1));
    printf("ready\n");
    int signal;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    while (sigwait(&set, &signal)) {}
    ends = 1;
    for (int i = 0; i < 16; i++) pthread_join(threads[i], 0);
    printf("errors %d\n", errors);
    return errors != 0;
}
