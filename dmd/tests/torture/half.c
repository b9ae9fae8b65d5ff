// An allocator that defines only a part of the malloc family, as some allocators do: it has no function that returns a
// block's size.
#include <stddef.h>
#include <string.h>

static _Alignas(16) char pool[16 << 20];
static size_t used;

static void *take(size_t bytes) {
    size_t *block = (size_t *)(pool + __atomic_fetch_add(&used, (bytes + 31) & ~(size_t)15, __ATOMIC_SEQ_CST));
    if ((char *)block + bytes + 32 > pool + sizeof pool) return NULL;
    *block = bytes;
    return block + 2;
}

void *malloc(size_t bytes) { return take(bytes); }

void free(void *block) { (void)block; }

void *calloc(size_t count, size_t bytes) { return take(count * bytes); }

void *realloc(void *block, size_t bytes) {
    void *moved = take(bytes);
    if (block && moved) memcpy(moved, block, ((size_t *)block)[-2] < bytes ? ((size_t *)block)[-2] : bytes);
    return moved;
}
