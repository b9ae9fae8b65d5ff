// A plugin that passes its table of functions to the engine, and a program that loads and unloads the plugin. Prints
// whether the plugin is still loaded. Usage: connects PLUGIN
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

#ifdef PLUGIN
static size_t table[64] = {sizeof table};

__attribute__((constructor)) static void connect_it(void) {
    const void *(*connect_program)(const void *) = dlsym(RTLD_DEFAULT, "DMDConnect1");
    if (connect_program) connect_program(table);
}
#else
int main(int count, char **arguments) {
    if (count < 2) return 2;
    void *plugin = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (!plugin) return 3;
    if (dlsym(RTLD_DEFAULT, "DMDConnect1") && dlerror()) return 4;
    dlclose(plugin);
    puts(dlopen(arguments[1], RTLD_NOW | RTLD_NOLOAD) ? "there" : "gone");
    return 0;
}
#endif
