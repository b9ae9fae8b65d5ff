// Loads a library twice, and calls its function `work`: the first time twice. Usage: loads_allocator LIBRARY
#include <dlfcn.h>

int main(int count, char **words) {
    if (count != 2)
        return 2;
    for (int i = 0; i < 2; i++) {
        void *library = dlopen(words[1], RTLD_NOW);
        if (!library)
            return 3;
        void (*work)(void) = (void (*)(void))dlsym(library, "work");
        work();
        if (i == 0)
            work();
        dlclose(library);
    }
    return 0;
}
