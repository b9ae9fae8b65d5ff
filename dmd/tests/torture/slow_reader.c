// Writes a dump to a pipe. The pipe's reader stops after the first bytes, calls DMDReport, forks, and waits for the
// child. Usage: slow_reader PIPE
#define _GNU_SOURCE
#include "dmd.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static __typeof__(&DMDReport) report;
static const char *path;
static int status = -1;

static void *read_slowly(void *arg) {
    static char text[1 << 22];
    size_t length = 0;
    FILE *pipe = fopen(path, "r");
    __atomic_store_n((int *)arg, 1, __ATOMIC_SEQ_CST);
    if (!pipe) return NULL;
    int first = 1;
    for (int c; length < sizeof text - 1 && (c = getc(pipe)) != EOF;) {
        text[length++] = (char)c;
        if (!first || c != '[' || !memmem(text + length - 20, 20, "reportFaults", 12)) continue;
        first = 0;
        report(&length);
        pid_t child = fork();
        if (child == 0) _exit(0);
        waitpid(child, &status, 0);
    }
    fclose(pipe);
    return NULL;
}

int main(int count, char **arguments) {
    report = dlsym(RTLD_DEFAULT, "DMDReport");
    __typeof__(&DMDDump) dump = dlsym(RTLD_DEFAULT, "DMDDump");
    if (!report || count < 2) return 1;
    path = arguments[1];
    // These reports make the dump larger than a pipe's buffer.
    for (long i = 0; i < 1000; i++) report(&count);
    int opened = 0;
    pthread_t thread;
    // Keep this open, so that the reader can open the other end without waiting for a writer.
    int held = open(path, O_RDWR);
    pthread_create(&thread, NULL, read_slowly, &opened);
    while (!__atomic_load_n(&opened, __ATOMIC_SEQ_CST)) usleep(1000);
    int error = dump(path);
    close(held);
    pthread_join(thread, NULL);
    printf("error %d, child %d\n", error, status);
    return 0;
}
