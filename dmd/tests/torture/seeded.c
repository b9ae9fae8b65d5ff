// Blocks that all have different sizes, so that the sizes identify a sample. Usage: seeded CHILDREN. With 0 the
// program allocates the blocks, otherwise each of its children allocates them.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *volatile blocks[4000];

static void make_all(void) {
    for (int i = 0; i < 4000; i++) blocks[i] = malloc(10000 + i);
}

int main(int count, char **words) {
    int children = atoi(words[1]);
    if (!children) make_all();
    for (int i = 0; i < children; i++) {
        if (fork() == 0) {
            make_all();
            exit(0);
        }
    }
    for (int i = 0; i < children; i++) wait(NULL);
    return 0;
}
