// A library that keeps blocks. The test builds it several times, each time with another name and another size.
#include <stdlib.h>

__attribute__((noinline)) void *NAME(void) {
    void *volatile block = malloc(BYTES);
    return block;
}

void *make(void) {
    void *volatile block = NAME();
    return block;
}
