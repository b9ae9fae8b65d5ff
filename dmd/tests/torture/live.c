// Blocks that are live at the end. Each way to allocate has its own size: see ../suite/live_blocks.rs.
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static void *volatile kept[1000];
static volatile int count;

__attribute__((noinline)) static void *keep(void *block) {
    if (!block) abort();
    return kept[__atomic_fetch_add(&count, 1, __ATOMIC_SEQ_CST)] = block;
}

static void before_all(int argc, char **argv, char **env) {
    (void)argc, (void)argv, (void)env;
    keep(malloc(5001));
}
__attribute__((section(".preinit_array"), used)) static void (*preinit)(int, char **, char **) = before_all;

__attribute__((constructor)) static void constructor(void) {
    for (int i = 0; i < 3; i++) keep(malloc(5002));
}
__attribute__((destructor)) static void destructor(void) { keep(malloc(5003)); }
static void at_exit(void) { keep(malloc(5004)); }

// The loader chooses this function while it relocates the program, before other code runs.
static int chosen(void) { return 1; }
static int (*choose(void))(void) { return chosen; }
int by_ifunc(void) __attribute__((ifunc("choose")));

static pthread_key_t key;
static void thread_ends(void *value) {
    (void)value;
    keep(malloc(5005));
}
static void *in_thread(void *arg) {
    pthread_setspecific(key, arg);
    keep(malloc(5006));
    free(malloc(1));
    return NULL;
}

static void handler(int number) {
    (void)number;
    keep(malloc(5007));
}

static ucontext_t outside, inside;
static void coroutine(void) {
    for (int i = 0; i < 6; i++) {
        keep(malloc(5008));
        swapcontext(&inside, &outside);
    }
}

static jmp_buf place;
__attribute__((noinline)) static void jump(void) {
    keep(malloc(5009));
    longjmp(place, 1);
}

static void *freer(void *blocks) {
    void **list = blocks;
    for (int i = 0; i < 10; i++) free(list[i]);
    return NULL;
}

__attribute__((noinline)) static int deep(int depth) {
    char *volatile frame = alloca(16);
    frame[0] = (char)depth;
    if (depth == 0) keep(malloc(5012));
    else deep(depth - 1);
    return frame[0];
}

static void *deep_thread(void *arg) {
    deep(100000);
    return arg;
}

static void prepare(void) { keep(malloc(5014)); }

int main(void) {
    atexit(at_exit);
    pthread_key_create(&key, thread_ends);
    pthread_attr_t small, large;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN);
    pthread_attr_init(&large);
    pthread_attr_setstacksize(&large, 64 << 20);
    pthread_t thread;
    for (int i = 0; i < 5; i++) {
        if (pthread_create(&thread, &small, in_thread, &small) != 0) return 1;
        pthread_join(thread, NULL);
    }
    stack_t stack = {.ss_sp = malloc(SIGSTKSZ), .ss_size = SIGSTKSZ};
    sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < 4; i++) raise(SIGUSR1);

    char *other = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    getcontext(&inside);
    inside.uc_stack.ss_sp = other;
    inside.uc_stack.ss_size = 65536;
    makecontext(&inside, coroutine, 0);
    for (int i = 0; i < 6; i++) swapcontext(&outside, &inside);
    munmap(other, 65536);

    for (volatile int i = 0; i < 2; i++)
        if (setjmp(place) == 0) jump();

    void *blocks[17];
    for (int i = 0; i < 17; i++) blocks[i] = calloc(5, 1002);
    pthread_create(&thread, NULL, freer, blocks);
    pthread_join(thread, NULL);
    for (int i = 10; i < 17; i++) keep(blocks[i]);

    for (int i = 0; i < 2; i++) {
        void *aligned;
        if (posix_memalign(&aligned, 1 << 20, 5011) != 0) return 1;
        keep(aligned);
    }
    pthread_create(&thread, &large, deep_thread, NULL);
    pthread_join(thread, NULL);

    for (int i = 0; i < 8; i++) {
        void *block = malloc(100);
        block = realloc(block, 2000000);
        keep(realloc(block, 5013));
    }
    char *text = malloc(5016);
    memset(text, 'a', 5014);
    text[5014] = 0;
    keep(strdup(text));
    free(text);

    pthread_atfork(prepare, NULL, NULL);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 3; i++) keep(malloc(5017));
        exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    printf("%d %d\n", status, by_ifunc());
    return 0;
}
