// Reports pointers into the middle of blocks of all sizes, and just past their ends. Usage: inside FILE
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

static void *volatile sink;

int main(int count, char **arguments) {
    unsigned long (*report)(const void *) = dlsym(RTLD_DEFAULT, "DMDReport");
    int (*dump)(const char *) = dlsym(RTLD_DEFAULT, "DMDDump");
    int inside = 0, behind = 0;
    for (unsigned bits = 5; bits < 30; bits++) {
        unsigned long bytes = (1ul << bits) + 8 * bits;
        char *block = sink = malloc(bytes);
        if (!block) return 1;
        // Leaves most of the heap before the block empty.
        free(malloc(bytes));
        for (unsigned part = 1; part <= 4; part++, inside++) report(block + bytes / 4 * part - 1);
        report(block + malloc_usable_size(block)), behind++;
        if (bits % 3 == 0) {
            free(block);
            report(block + bytes - 9), behind++;
        }
    }
    if (dump(arguments[1]) != 0) return 2;
    printf("%d inside, %d behind\n", inside, behind);
    return 0;
}
