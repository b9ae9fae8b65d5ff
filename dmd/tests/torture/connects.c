// A plugin that connects to the engine and uses only the first entries of its table, and a program that loads and
// unloads the plugin. Prints whether the plugin is still loaded. Usage: connects PLUGIN
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef void run_reporters(unsigned long long milliseconds);

struct engine_table {
    size_t size;
    bool (*is_running)(void);
    void (*add_program)(run_reporters *);
};

#ifdef PLUGIN
static void run(unsigned long long milliseconds) {}

__attribute__((constructor)) static void connect_it(void) {
    const struct engine_table *(*engine)(void) = dlsym(RTLD_DEFAULT, "DMDEngine3");
    if (!engine) return;
    const struct engine_table *table = engine();
    if (table->size >= sizeof *table && table->is_running()) table->add_program(run);
}
#else
int main(int count, char **arguments) {
    if (count < 2) return 2;
    void *plugin = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (!plugin) return 3;
    if (dlsym(RTLD_DEFAULT, "DMDEngine3") && dlerror()) return 4;
    dlclose(plugin);
    puts(dlopen(arguments[1], RTLD_NOW | RTLD_NOLOAD) ? "there" : "gone");
    return 0;
}
#endif
