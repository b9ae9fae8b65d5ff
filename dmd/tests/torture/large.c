// Many large blocks, over more addresses than fit into a table that has room for small ones everywhere.
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    static void *volatile kept;
    int count = 0;
    for (int i = 0; i < 40000; i++) count += (kept = malloc(1 << 20)) != NULL;
    printf("%d\n", count);
    return 0;
}
