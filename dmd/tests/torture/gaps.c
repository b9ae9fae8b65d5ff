// Allocates two blocks, one of them through two functions. The linker leaves gaps between the program's segments.
#include <stdlib.h>

__attribute__((noinline)) static char *leaf(int size) {
    char *block = malloc(size);
    __asm__ volatile("" : "+r"(block));
    return block;
}

__attribute__((noinline)) static char *outer(int size) {
    char *block = leaf(size);
    block[0] = 1; // no tail call
    return block;
}

int main(void) { return leaf(1000) == outer(2000); }
