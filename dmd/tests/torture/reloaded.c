// Loads and unloads two libraries in turn, at the same place in memory; keeps the last block of each.
// Usage: reloaded FIRST SECOND TIMES
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments) {
    if (count < 4) return 1;
    void *place[2], *last[2] = {NULL, NULL};
    for (int i = 0; i < atoi(arguments[3]); i++) {
        void *library = dlopen(arguments[1 + i % 2], RTLD_NOW);
        if (!library) return 2;
        void *(*make)(void) = (void *(*)(void))dlsym(library, "make");
        place[i % 2] = (void *)make;
        free(last[i % 2]);
        last[i % 2] = make();
        dlclose(library);
    }
    puts(place[0] == place[1] ? "same place" : "other places");
    return 0;
}
