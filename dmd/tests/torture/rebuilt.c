// Loads and unloads the library with the first name; then renames each other library to this name, and loads it. All
// libraries have the same place in memory. Between calls of the libraries the program allocates blocks of 2,222 bytes.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *volatile kept;

__attribute__((noinline)) static void own(void) { kept = malloc(2222); }

int main(int count, char **arguments) {
    void *place = NULL;
    int moved = 0;
    for (int i = 1; i < count; i++) {
        if (i > 1 && rename(arguments[i], arguments[1]) != 0) return 1;
        void *library = dlopen(arguments[1], RTLD_NOW);
        if (!library) return 2;
        void (**make)(void) = dlsym(library, "make");
        if (!place) place = make;
        moved += place != (void *)make;
        for (int at = 0; make[at]; at++) {
            make[at]();
            own();
        }
        dlclose(library);
    }
    printf("%d moved\n", moved);
    return 0;
}
