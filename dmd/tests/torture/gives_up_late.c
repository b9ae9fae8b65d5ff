// Fills the pipe of its recording, becomes another user, and continues to allocate until the end of its input.
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { NOBODY = 65534 };

static void allocate(int count) {
    for (int i = 0; i < count; i++) {
        void *volatile block = malloc(rand() % 5000 + 1);
        if (i % 3) free(block);
    }
}

// The engine's thread waits for a reader once the pipe is full.
static void fill(void) {
    for (int descriptor = 3; descriptor < 1024; descriptor++) {
        if (fcntl(descriptor, F_SETPIPE_SZ, 4096) < 0) continue;
        struct pollfd pipe = {.fd = descriptor, .events = POLLOUT};
        for (int i = 0; i < 200 && poll(&pipe, 1, 0) == 1; i++) {
            allocate(500);
            usleep(20000);
        }
        return;
    }
    exit(3);
}

int main(void) {
    fill();
    usleep(200000);
    puts("filled");
    fflush(stdout);
    getchar();
    if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0) return 2;
    puts("became");
    fflush(stdout);
    fcntl(0, F_SETFL, O_NONBLOCK);
    char byte;
    while (read(0, &byte, 1) != 0) {
        allocate(3000);
        usleep(1000);
    }
    return 0;
}
