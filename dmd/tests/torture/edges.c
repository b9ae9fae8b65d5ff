// Prints the results of the allocation functions for sizes of zero, overflows, alignments and errno.
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *volatile sink;

int main(void) {
    errno = 77;
    void *zero = malloc(0);
    printf("malloc(0): %d errno %d\n", zero != NULL, errno);
    free(zero);
    free(NULL);
    printf("free: errno %d\n", errno);
    errno = 0;
    sink = malloc(SIZE_MAX);
    printf("malloc(SIZE_MAX): %d errno %d\n", sink != NULL, errno == ENOMEM);
    errno = 0;
    sink = calloc(SIZE_MAX / 2, 3);
    printf("calloc: %d errno %d\n", sink != NULL, errno == ENOMEM);
    errno = 0;
    sink = reallocarray(NULL, SIZE_MAX / 2, 3);
    printf("reallocarray: %d errno %d\n", sink != NULL, errno == ENOMEM);
    char *block = malloc(100);
    strcpy(block, "still here");
    errno = 0;
    volatile size_t huge = PTRDIFF_MAX;
    char *moved = realloc(block, huge);
    printf("realloc(PTRDIFF_MAX): %d errno %d '%s'\n", moved != NULL, errno == ENOMEM, block);
    moved = realloc(block, 200);
    printf("realloc: '%s' usable %d\n", moved, malloc_usable_size(moved) >= 200);
    sink = realloc(moved, 0);
    printf("realloc(0): %d\n", sink != NULL);
    free(sink);
    void *place = (void *)1;
    errno = 55;
    int error = posix_memalign(&place, 3, 10);
    printf("posix_memalign(3): %d %d errno %d\n", error == EINVAL, place == (void *)1, errno);
    for (size_t align = 8; align <= 65536; align *= 2) {
        error = posix_memalign(&place, align, align + 1);
        void *other = memalign(align, 10), *third = aligned_alloc(align, align);
        printf("%zu: %d %d %d %d\n", align, error, (int)((uintptr_t)place % align),
               (int)((uintptr_t)other % align), (int)((uintptr_t)third % align));
        free(place);
        free(other);
        free(third);
    }
    sink = valloc(1);
    printf("valloc: %d\n", (int)((uintptr_t)sink % 4096));
    free(sink);
    sink = pvalloc(1);
    printf("pvalloc: %d %d\n", (int)((uintptr_t)sink % 4096), malloc_usable_size(sink) >= 4096);
    free(sink);
    char *zeros = calloc(1000, 1000);
    int sum = 0;
    for (int i = 0; i < 1000000; i++) sum += zeros[i];
    printf("calloc: %d\n", sum);
    free(zeros);
    printf("usable of null: %zu\n", malloc_usable_size(NULL));
    return 7;
}
