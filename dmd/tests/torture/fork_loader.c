// Forks while another thread holds the loader's lock on its list. In the child, no thread releases the lock.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static sem_t inside, done;
static void *volatile kept;

static int visit(struct dl_phdr_info *info, size_t size, void *data) {
    (void)info, (void)size, (void)data;
    sem_post(&inside);
    sem_wait(&done);
    return 1;
}

static void *hold(void *arg) {
    dl_iterate_phdr(visit, NULL);
    return arg;
}

int main(void) {
    sem_init(&inside, 0, 0);
    sem_init(&done, 0, 0);
    pthread_t thread;
    if (pthread_create(&thread, NULL, hold, NULL) != 0) return 1;
    sem_wait(&inside);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        kept = malloc(9301);
        exit(5);
    }
    int status = -1;
    waitpid(child, &status, 0);
    sem_post(&done);
    pthread_join(thread, NULL);
    printf("%s\n", WIFEXITED(status) && WEXITSTATUS(status) == 5 ? "ended" : "killed");
    return 0;
}
