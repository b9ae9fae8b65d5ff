// Blocks of all sizes for a reader in another process. The program frees or moves many of them, prints the live
// blocks, and waits for the end of its input.
#include <stdio.h>
#include <stdlib.h>

enum { BLOCKS = 8000 };

static void *blocks[BLOCKS];
static size_t sizes[BLOCKS];
static unsigned long long state = 42;

static unsigned random_below(unsigned most) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(state >> 33) % most;
}

static size_t some_size(void) {
    switch (random_below(100)) {
    case 0: return 1 + random_below(600000);
    case 1: case 2: case 3: return 1 + random_below(40000);
    case 4: return random_below(2);
    default: return 1 + random_below(300);
    }
}

int main(void) {
    // Reads of the input must not allocate.
    setvbuf(stdin, NULL, _IONBF, 0);
    for (int turn = 0; turn < 3; turn++) {
        for (int at = 0; at < BLOCKS; at++) {
            if (random_below(2)) continue;
            size_t size = some_size();
            if (random_below(3) == 0) {
                free(blocks[at]);
                blocks[at] = NULL;
            } else if (random_below(20) == 0 && !blocks[at]) {
                blocks[at] = aligned_alloc(4096, size = (size + 4096) / 4096 * 4096);
                sizes[at] = size;
            } else if (size > 0) {
                blocks[at] = realloc(blocks[at], size);
                sizes[at] = size;
            }
        }
    }
    for (int at = 0; at < BLOCKS; at++) {
        if (blocks[at]) printf("%p %zu\n", blocks[at], sizes[at]);
    }
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) {}
    return 0;
}
