// Closes all its files, changes its root, and clears its environment. DMD cannot write the dump, and the program ends
// as without DMD.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int main(void) {
    int out = fcntl(1, F_DUPFD, 100);
    for (int i = 0; i < 100; i++) close(i);
    clearenv();
    umask(0777);
    char folder[] = "/tmp/elsewhere-XXXXXX";
    if (!mkdtemp(folder)) return 1;
    // Only some users may do this.
    if (chroot(folder) == 0) rmdir("/");
    else rmdir(folder);
    chdir("/");
    free(malloc(100));
    dprintf(out, "elsewhere\n");
    return 4;
}
