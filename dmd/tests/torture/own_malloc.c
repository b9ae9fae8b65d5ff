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
__attribute__((noinline)) void free(void *block) { __asm__ volatile("" : : "r"(block) : "memory"); }
void *calloc(size_t count, size_t bytes) { return memset(malloc(count * bytes), 0, count * bytes); }
void *realloc(void *block, size_t bytes) {
    void *moved = malloc(bytes);
    return block ? memcpy(moved, block, bytes) : moved;
}

#ifdef JEMALLOC
// jemalloc has a function of this name, too.
void *mallocx(size_t bytes, int flags) { return malloc(bytes); }
static void *volatile kept[2];
#endif

int main(void) {
#ifdef JEMALLOC
    kept[0] = malloc(201);
    kept[1] = strdup("A text of the C library."); // 25 bytes
#endif
    char *text = malloc(100);
    strcpy(text, "mine");
    puts(text);
    free(text);
    return 0;
}
