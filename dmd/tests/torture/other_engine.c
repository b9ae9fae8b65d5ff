// A library that programs find in front of libdmd.so. With -DENTRIES=N it passes on the engine's table as a version
// with N more entries would (or fewer, if N is negative). A call of an entry that this version does not have ends the
// process. Without ENTRIES it is a library of version 1, and its functions end the process.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#ifdef ENTRIES
static const void *table[256];

static int is_libdmd(const void *address) {
    Dl_info info;
    return dladdr(address, &info) && strstr(info.dli_fname, "libdmd.so");
}

const void *DMDEngine3(void) {
    static const void *nothing;
    // The library itself does not read other versions of its own table.
    if (is_libdmd(__builtin_return_address(0))) return &nothing;
    const size_t *(*real)(void) = dlsym(RTLD_NEXT, "DMDEngine3");
    const size_t *theirs = real();
    size_t entries = *theirs / sizeof(void *), ours = entries + ENTRIES;
    for (size_t at = 0; at < sizeof table / sizeof *table; at++) table[at] = abort;
    memcpy(table, theirs, (entries < ours ? entries : ours) * sizeof(void *));
    table[0] = (const void *)(ours * sizeof(void *));
    return table;
}
#else
void *DMDDoor1(void) { abort(); }
void *DMDConnect1(void *program) { abort(); }
#endif
