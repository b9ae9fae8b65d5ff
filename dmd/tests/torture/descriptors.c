// Closes the standard streams and reuses their numbers for files: only the program may write to these files.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(void) {
    int out = dup(1);
    close(0), close(1), close(2);
    char name[] = "descriptors-XXXXXX";
    int file = mkstemp(name);
    int again = dup(file), third = dup(file);
    char *block = malloc(1000);
    if (write(again, "abc", 3) != 3) return 1;
    free(block);
    dprintf(out, "%d %d %d %d, %ld bytes\n", file, again, third, open("/dev/null", O_RDONLY) - third,
            (long)lseek(file, 0, SEEK_END));
    unlink(name);
    return 0;
}
