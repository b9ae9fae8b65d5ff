// For each line of its input: starts a child, ends the child, or prints which child a call finds.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t child;

static void say(pid_t found) {
    if (found < 0) puts(errno == ECHILD ? "none" : strerror(errno));
    else if (found == 0) puts("running");
    else puts(found == child ? "child" : "foreign");
    fflush(stdout);
}

static pid_t by_id(int options) {
    siginfo_t info = {0};
    return waitid(P_ALL, 0, &info, options | WEXITED) != 0 ? -1 : info.si_pid;
}

int main(void) {
    int ends[2];
    pipe(ends);
    puts("ready");
    fflush(stdout);
    char line[32], byte;
    setvbuf(stdin, NULL, _IONBF, 0);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (strcmp(line, "start") == 0) {
            child = fork();
            if (child == 0) {
                close(ends[1]);
                read(ends[0], &byte, 1);
                _exit(0);
            }
            say(0);
        } else if (strcmp(line, "end") == 0) {
            write(ends[1], "", 1);
            say(child);
        } else if (strcmp(line, "waitpid") == 0) {
            say(waitpid(-1, NULL, __WALL | WNOHANG));
        } else if (strcmp(line, "wait4") == 0) {
            struct rusage usage;
            say(wait4(-1, NULL, __WALL | WNOHANG, &usage));
        } else if (strcmp(line, "waitid") == 0) {
            say(by_id(__WALL | WNOHANG | WNOWAIT));
        } else if (strcmp(line, "block") == 0) {
            say(waitpid(-1, NULL, __WALL));
        }
    }
    return 0;
}
