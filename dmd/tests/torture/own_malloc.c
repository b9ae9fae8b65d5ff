// An executable that defines its own malloc.
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static char heap[1 << 20] __attribute__((aligned(16)));
static size_t used;

void *malloc(size_t bytes) {
    void *block = heap + used;
    used += (bytes + 31) / 16 * 16;
    return block;
}
void free(void *block) { (void)block; }
void *calloc(size_t count, size_t bytes) { return memset(malloc(count * bytes), 0, count * bytes); }
void *realloc(void *block, size_t bytes) {
    void *moved = malloc(bytes);
    return block ? memcpy(moved, block, bytes) : moved;
}

int main(void) {
    char *text = malloc(100);
    strcpy(text, "mine");
    puts(text);
    free(text);
    return 0;
}
