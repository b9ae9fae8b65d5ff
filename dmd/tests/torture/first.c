// What a program finds at its start: no error, although the loader was asked for names and its folder is gone.
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    int number = errno;
    const char *error = dlerror();
    printf("errno %d, dlerror %s\n", number, error ? error : "none");
    return 0;
}
