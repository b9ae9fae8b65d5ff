// Many large blocks, over a range of addresses that is too wide for a table with an entry for each small block.
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    static void *volatile kept;
    int count = 0;
    for (int i = 0; i < 40000; i++) count += (kept = malloc(1 << 20)) != NULL;
    printf("%d\n", count);
    return 0;
}
