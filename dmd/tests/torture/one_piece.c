// A program that was compiled in one piece with mimalloc: the compiler inlines the allocator's functions.
#include "static.c"
#include <stdio.h>

static void *volatile kept[1000];

int main(void) {
    for (int i = 0; i < 1000; i++)
        kept[i] = mi_malloc(100);
    for (int i = 0; i < 500; i++)
        mi_free(kept[i]);
    puts("done");
    return 0;
}
