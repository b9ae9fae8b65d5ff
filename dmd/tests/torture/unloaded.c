// Loads and unloads each library of the arguments, one after another and mostly at the same place in memory. The
// libraries' blocks outlive the libraries.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *volatile kept[100];

int main(int count, char **arguments) {
    for (int i = 1; i < count; i++) {
        void *library = dlopen(arguments[i], RTLD_NOW);
        if (!library) return 1;
        void *(*make)(void) = (void *(*)(void))dlsym(library, "make");
        kept[i] = make();
        dlclose(library);
    }
    printf("%d\n", count - 1);
    return 0;
}
