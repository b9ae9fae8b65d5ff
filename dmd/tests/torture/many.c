// A library of many functions that keep blocks. The test builds it several times, each time with another size.
#include <stdlib.h>

static void *volatile kept;

#define MAKE(n) \
    static void make##n(void) { kept = malloc(BYTES); }
#define EACH(each) \
    each(0) each(1) each(2) each(3) each(4) each(5) each(6) each(7) each(8) each(9) each(10) each(11) each(12) \
    each(13) each(14) each(15) each(16) each(17) each(18) each(19)
#define NAME(n) make##n,

EACH(MAKE)

void (*make[])(void) = {EACH(NAME) NULL};
