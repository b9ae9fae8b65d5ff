// Starts itself again in every way. Each process started in this way keeps three blocks of 7,001 bytes.
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int wait_for(pid_t child) {
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -status;
}

int main(int argc, char **argv) {
    if (argc > 1) {
        static void *volatile kept[3];
        for (int i = 0; i < 3; i++) kept[i] = malloc(7001);
        return atoi(argv[1]);
    }
    char *arguments[] = {argv[0], "3", NULL};
    pid_t child = vfork();
    if (child == 0) {
        execv(argv[0], arguments);
        _exit(1);
    }
    printf("vfork %d\n", wait_for(child));
    if (posix_spawn(&child, argv[0], NULL, NULL, arguments, environ) != 0) return 1;
    printf("posix_spawn %d\n", wait_for(child));
    char *none[] = {NULL};
    if (posix_spawn(&child, argv[0], NULL, NULL, arguments, none) != 0) return 1;
    printf("without environment %d\n", wait_for(child));
    char command[4096];
    snprintf(command, sizeof command, "'%s' 4", argv[0]);
    printf("system %d\n", WEXITSTATUS(system(command)));
    FILE *pipe = popen(command, "r");
    printf("popen %d\n", WEXITSTATUS(pclose(pipe)));
    fflush(stdout);
    pid_t children[50];
    for (int i = 0; i < 50; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            static void *volatile kept;
            kept = malloc((size_t)7100 + (size_t)i);
            exit(i);
        }
    }
    int sum = 0;
    for (int i = 0; i < 50; i++) sum += wait_for(children[i]);
    printf("fork %d\n", sum);
    fflush(stdout);
    clearenv();
    putenv("LEFT=1");
    execv(argv[0], arguments);
    return 1;
}
