// Becomes another user, as daemons do, then waits for the end of its input.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { NOBODY = 65534 };

int main(void) {
    void *volatile block = malloc(50001);
    (void)block;
    // Other users have no access to the previous folder.
    setenv("TMPDIR", "/tmp", 1);
    if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0) return 2;
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) {}
    return 0;
}
