// The child of a fork allocates 5,000 blocks, and then stops allocating. The parent prints the child's number, waits
// for the end of its input, and kills the child. With an argument, the parent allocates before the fork.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **arguments) {
    static char buffer[64];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    setvbuf(stdin, NULL, _IONBF, 0);
    if (count > 1) {
        void *volatile block = malloc(99);
        (void)block;
    }
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 5000; i++) {
            void *volatile block = malloc(7001);
            (void)block;
        }
        for (;;) pause();
    }
    printf("%d\n", child);
    fflush(stdout);
    while (getchar() != EOF) {}
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return 0;
}
