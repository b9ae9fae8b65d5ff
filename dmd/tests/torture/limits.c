// Ends under a limit on the size of files or on address space that leaves no room for a dump.
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static void *volatile kept;

int main(int argc, char **argv) {
    for (size_t i = 0; i < 1000; i++) kept = malloc(100 + i);
    struct rlimit limit = {1000, 1000};
    if (setrlimit(argc > 1 ? RLIMIT_AS : RLIMIT_FSIZE, &limit) != 0) return 1;
    int got = 0;
    for (int i = 0; i < 100000; i++) got += (kept = malloc(5000)) != NULL;
    puts(argc == 1 || got < 100000 ? "limited" : "strange");
    return 3;
}
