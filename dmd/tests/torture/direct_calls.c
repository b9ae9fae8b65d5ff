// A program with an allocator of its own, to which it refers in each form that aarch64 has: `bl`, `b`, `adrp` with `add`,
// and a word. Blocks of 5001 to 5003 bytes stay. Blocks of 6001 to 6004 bytes are freed, each in another way.
#include <stddef.h>
#include <stdio.h>

static char all[1 << 20] __attribute__((aligned(16)));
static size_t used;

// mimalloc's private names start like this.
void _mi_marker(void) {}

__attribute__((noinline)) void *mi_malloc(size_t bytes) {
    used += (bytes + 15) & ~(size_t)15;
    return all + used - ((bytes + 15) & ~(size_t)15);
}

__attribute__((noinline)) void mi_free(void *block) { __asm__ volatile("" : : "r"(block) : "memory"); }

void *(*volatile allocate)(size_t) = mi_malloc;
void (*volatile release)(void *) = mi_free;
static void *volatile kept[3];

__attribute__((noinline)) static void *call(void *(*function)(size_t), size_t bytes) {
    __asm__ volatile("" : "+r"(function));
    return function(bytes);
}
__attribute__((noinline)) static void call_free(void (*function)(void *), void *block) {
    __asm__ volatile("" : "+r"(function));
    function(block);
}
__attribute__((noinline)) static void jump_to_free(void *block) { mi_free(block); }

int main(void) {
    kept[0] = mi_malloc(5001);
    kept[1] = allocate(5002);
    kept[2] = call(mi_malloc, 5003);
    mi_free(mi_malloc(6001));
    release(mi_malloc(6002));
    call_free(mi_free, mi_malloc(6003));
    jump_to_free(mi_malloc(6004));
    puts("done");
    return 0;
}
