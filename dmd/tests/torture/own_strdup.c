// A program whose strdup and strndup are its own, beside an allocator in place of malloc. strdup's texts are in a pool,
// and strndup puts a header before each text.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char pool[4096];
static size_t used;

char *strdup(const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = memcpy(pool + used, text, bytes);
    used += bytes;
    return copy;
}

char *strndup(const char *text, size_t most) {
    size_t bytes = strnlen(text, most);
    char *block = malloc(bytes + 17);
    char *copy = memcpy(block + 16, text, bytes);
    copy[bytes] = 0;
    return copy;
}

int main(void) {
    static char text[2001];
    memset(text, 'x', 2000);
    char *volatile in_pool = strdup(text);
    char *volatile behind_header = strndup(text, 1000);
    puts(in_pool[1999] == 'x' && behind_header[999] == 'x' ? "done" : "wrong");
    return 0;
}
