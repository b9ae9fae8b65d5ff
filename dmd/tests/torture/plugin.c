// A library that keeps blocks; several are made of it, with another name and another size each.
#include <stdlib.h>

__attribute__((noinline)) void *NAME(void) {
    void *volatile block = malloc(BYTES);
    return block;
}

void *make(void) {
    void *volatile block = NAME();
    return block;
}
