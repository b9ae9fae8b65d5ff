// Overwrites its arguments and its environment, as servers do to show their state.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;
static void *volatile kept;

int main(int argc, char **argv) {
    char *end = argv[argc - 1] + strlen(argv[argc - 1]) + 1;
    for (int i = 0; environ[i]; i++)
        if (environ[i] > argv[0] && environ[i] + strlen(environ[i]) + 1 > end && environ[i] < argv[0] + 100000)
            end = environ[i] + strlen(environ[i]) + 1;
    memset(argv[0], 'x', (size_t)(end - argv[0]) - 1);
    environ = NULL;
    kept = malloc(9001);
    puts("titled");
    return 0;
}
