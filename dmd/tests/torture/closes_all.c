// Closes every descriptor, opens listening sockets under all their numbers, and connects to each: only this program
// may accept the connections.
#define _GNU_SOURCE
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    int most = limit.rlim_cur < 1200 ? limit.rlim_cur : 1200;
    // By now the library's thread waits for peers.
    usleep(200000);
    for (int at = 3; at < most; at++) close(at);
    int own = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    // The kernel chooses the name.
    if (bind(own, (void *)&name, sizeof name.sun_family) || listen(own, 8)) return 1;
    for (int at = own + 1; at < most; at++) dup2(own, at);
    // A connection to the library wakes its thread, which then waits for the next peer.
    glob_t found;
    char pattern[4096];
    snprintf(pattern, sizeof pattern, "%s/about-memory/*.sock", getenv("XDG_RUNTIME_DIR"));
    if (glob(pattern, 0, NULL, &found) == 0) {
        struct sockaddr_un library = {.sun_family = AF_UNIX};
        strncpy(library.sun_path, found.gl_pathv[0], sizeof library.sun_path - 1);
        close(most - 1);
        // The connection may be refused: the library's thread may already have found its socket closed.
        int peer = socket(AF_UNIX, SOCK_STREAM, 0);
        if (connect(peer, (void *)&library, sizeof library) && errno != ECONNREFUSED) return 4;
    } else {
        puts("nobody listens");
    }
    // The library's thread waits for one second at a time. It may still wait on a descriptor number that this program
    // has taken.
    usleep(1200000);
    socklen_t size = sizeof name;
    getsockname(own, (void *)&name, &size);
    for (int round = 0; round < 4; round++) {
        // Free two numbers at the end for this connection.
        close(most - 1), close(most - 2);
        int to = socket(AF_UNIX, SOCK_STREAM, 0);
        if (connect(to, (void *)&name, size)) return 2;
        usleep(50000);
        int from = accept4(own, NULL, NULL, SOCK_NONBLOCK);
        if (from < 0) return 3;
        close(to), close(from);
    }
    puts("nobody else accepted");
    return 0;
}
