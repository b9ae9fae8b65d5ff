// Blocks whose sizes all differ, so that a sample is known by its sizes. Usage: seeded CHILDREN: with 0 the program makes
// them itself, else each of its children does.
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
