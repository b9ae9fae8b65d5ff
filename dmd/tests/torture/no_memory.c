// Runs out of address space, and later locks memory. malloc fails in the same way as without the library, and the
// program continues.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

static void *blocks[100000];

int main(void) {
    struct rlimit limit = {400 << 20, 400 << 20};
    setrlimit(RLIMIT_AS, &limit);
    int count = 0;
    errno = 0;
    while (count < 100000) {
        void *block = malloc(1 << 20);
        if (!block) break;
        memset(block, 1, 100);
        blocks[count++] = block;
    }
    printf("%s, errno %d\n", count > 50 && count < 401 ? "ran out" : "strange", errno == ENOMEM);
    for (int i = 0; i < count; i++) free(blocks[i]);
    for (int i = 0; i < 50000; i++) blocks[i] = malloc(100);
    for (int i = 0; i < 50000; i++) {
        if (!blocks[i]) puts("null");
        free(blocks[i]);
    }
    // The system may reject this call. The test is about the allocations below.
    mlockall(MCL_CURRENT | MCL_FUTURE);
    for (int i = 0; i < 1000; i++) blocks[i] = malloc((size_t)i * 50);
    for (int i = 0; i < 1000; i++) free(blocks[i]);
    puts("done");
    return 0;
}
