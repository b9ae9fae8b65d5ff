// At the start of the program, errno and the loader's error are empty. The library has then already asked the loader
// for names, and the folder is gone.
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
