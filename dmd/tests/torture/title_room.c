// Computes the room of its arguments and environment as servers do, and writes a title there. Usage: title_room HOW
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;
static void *volatile kept;

int main(int argc, char **argv) {
    size_t room = 0;
    if (argc > 1 && strcmp(argv[1], "sum") == 0) {
        // The room is the sum of the lengths of all strings.
        for (int i = 0; i < argc; i++) room += strlen(argv[i]) + 1;
        for (char **entry = environ; *entry; entry++) room += strlen(*entry) + 1;
    } else {
        // The room extends to the end of the last variable.
        char **last = environ;
        while (last[1]) last++;
        room = (size_t)(*last + strlen(*last) - argv[0]);
    }
    char *start = argv[0];
    environ = NULL;
    memset(start, 0, room);
    strcpy(start, "title");
    char shown[6] = "";
    FILE *file = fopen("/proc/self/cmdline", "r");
    if (!file || fread(shown, 1, 5, file) != 5) return 1;
    kept = malloc(9101);
    puts(shown);
    return 0;
}
