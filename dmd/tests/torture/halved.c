// Uses the allocator of half.c.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *volatile kept;

int main(void) {
    for (int i = 0; i < 1000; i++) {
        char *block = malloc(9002);
        memset(block, 1, 9002);
        if (i % 2 == 0) free(block);
        else kept = block;
    }
    char *text = realloc(strdup("moved"), 9003);
    kept = text;
    puts(text);
    return 0;
}
