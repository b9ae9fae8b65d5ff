// Calls each function under which mimalloc stands in for the C library and for C++, if it replaces malloc. It is a
// program in C and in C++. Of each function one block stays, whose size no other function has. Other blocks of these
// functions are freed.
#ifndef __cplusplus
#define _GNU_SOURCE
#endif
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
#include <new>
extern "C" {
#endif
int reallocarr(void *place, size_t count, size_t size);
void *reallocf(void *block, size_t bytes);
void *_aligned_malloc(size_t bytes, size_t alignment);
void vfree(void *block);
void cfree(void *block);
void *__libc_memalign(size_t alignment, size_t bytes);
void *__libc_valloc(size_t bytes);
void *__libc_pvalloc(size_t bytes);
int __posix_memalign(void **place, size_t alignment, size_t bytes);
char *mi_realpath(const char *name, char *room);
void *mi_new_n(size_t count, size_t size);
char *mi_strndup(const char *text, size_t most);
#ifdef __cplusplus
}
#endif

static void *volatile kept[64];
static int used;
static void *keep(void *block) { return kept[used++] = block; }

static void c_functions(void) {
    keep(malloc(1001));
    keep(calloc(2, 501)); // 1002
    keep(realloc(malloc(10), 1003));
    keep(reallocarray(malloc(10), 2, 502)); // 1004
    keep(reallocf(malloc(10), 1005));
    void *block = NULL;
    reallocarr(&block, 1, 10);
    reallocarr(&block, 2, 503); // 1006
    keep(block);
    void *gone = malloc(10);
    reallocarr(&gone, 0, 10); // frees it
    if (reallocarr((void *)&kept[0], (size_t)1 << 40, (size_t)1 << 40) == 0)
        abort(); // 1001 stays
    keep(aligned_alloc(16, 1007));
    keep(memalign(64, 1008));
    posix_memalign(&block, 64, 1009);
    keep(block);
    keep(valloc(1010));
    keep(pvalloc(1011));
    keep(_aligned_malloc(1012, 32));
    keep(__libc_memalign(32, 1013));
    keep(__libc_valloc(1014));
    keep(__libc_pvalloc(1015));
    __posix_memalign(&block, 32, 1016);
    keep(block);
    char text[1100];
    memset(text, 'x', sizeof text);
    text[1016] = 0;
    keep(strdup(text));       // 1017
    text[1016] = 'x';
    keep(strndup(text, 1017)); // 1018
    keep(mi_new_n(2, 510)); // 1020
    keep(mi_strndup(text, 1020)); // 1021
    vfree(malloc(10));
    cfree(malloc(10));
    // Without room, the path is a block: "/dev/null" has 10 bytes. With room, it is not.
    static char room[5000];
    keep(mi_realpath("/dev/./null", NULL));
    if (mi_realpath("/dev/./null", room) != room)
        abort();
}

#ifdef __cplusplus
// A block that is freed by each operator, and one that stays.
static void operators(void) {
    std::nothrow_t nothrow;
    std::align_val_t aligned{64};
    keep(operator new(2001));
    keep(operator new[](2002));
    keep(operator new(2003, nothrow));
    keep(operator new[](2004, nothrow));
    keep(operator new(2005, aligned));
    keep(operator new[](2006, aligned));
    keep(operator new(2007, aligned, nothrow));
    keep(operator new[](2008, aligned, nothrow));
    operator delete(operator new(10));
    operator delete[](operator new[](10));
    operator delete(operator new(10), nothrow);
    operator delete[](operator new[](10), nothrow);
    operator delete(operator new(10), (size_t)10);
    operator delete[](operator new[](10), (size_t)10);
    operator delete(operator new(10, aligned), aligned);
    operator delete[](operator new[](10, aligned), aligned);
    operator delete(operator new(10, aligned), (size_t)10, aligned);
    operator delete[](operator new[](10, aligned), (size_t)10, aligned);
    operator delete(operator new(10, aligned, nothrow), aligned, nothrow);
    operator delete[](operator new[](10, aligned, nothrow), aligned, nothrow);
#ifdef THROWS
    // The exception passes through the hook.
    int caught = 0;
    try {
        keep(operator new((size_t)1 << 60));
    } catch (std::bad_alloc &) {
        caught = 1;
    }
    printf("caught %d\n", caught);
#endif
}
#endif

int main(void) {
    c_functions();
#ifdef __cplusplus
    operators();
#endif
    puts("done");
    return 0;
}
