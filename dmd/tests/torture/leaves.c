// Allocates, and then exits or executes another program. The lines of its input select the action.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline)) static void grow(void) {
    for (int i = 0; i < 100; i++) {
        void *volatile block = malloc(4321);
        (void)block;
    }
}

int main(void) {
    char line[100];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        grow();
        if (!strcmp(line, "exit")) exit(0);
        if (!strcmp(line, "_exit")) _exit(0);
        if (!strcmp(line, "exec")) execlp("cat", "cat", NULL), exit(1);
        if (!strcmp(line, "execv")) execv("/bin/cat", (char *[]){"cat", NULL}), exit(1);
        if (!strcmp(line, "missing")) execv("/missing", (char *[]){"missing", NULL});
        // The mode of the folder allows an exec, but the system rejects it.
        if (!strcmp(line, "folder")) execv("/", (char *[]){"folder", NULL});
        if (!strcmp(line, "vfork")) {
            if (vfork() == 0) execv("/missing", (char *[]){"missing", NULL}), _exit(1);
        }
        puts(line);
        fflush(stdout);
    }
    return 0;
}
