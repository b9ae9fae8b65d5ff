// Allocates ten blocks of 777 bytes, then waits for a debugger.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void *volatile block;

int main(void) {
    for (int i = 0; i < 10; i++) block = malloc(777);
    puts("ready");
    fflush(stdout);
    sleep(60);
    return 0;
}
