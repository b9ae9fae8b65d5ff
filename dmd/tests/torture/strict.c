// After the start a filter allows only some system calls. Every other call ends the process. Usage: strict HOW
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALLOW(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static struct sock_filter filter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    ALLOW(SYS_read), ALLOW(SYS_write), ALLOW(SYS_brk), ALLOW(SYS_mmap), ALLOW(SYS_munmap), ALLOW(SYS_futex),
    ALLOW(SYS_exit_group), ALLOW(SYS_rt_sigprocmask), ALLOW(SYS_rt_sigreturn),
    // The system calls that the end of a thread needs.
    ALLOW(SYS_exit), ALLOW(SYS_madvise), ALLOW(SYS_set_robust_list), ALLOW(SYS_rseq),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};
static struct sock_fprog program = {sizeof filter / sizeof *filter, filter};

static void *confine(void *how) {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    long error;
    if (strcmp(how, "syscall") == 0) error = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
    else if (strcmp(how, "all") == 0)
        error = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
    else error = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    if (error != 0) exit(1);
    for (size_t i = 0; i < 100000; i++) free(malloc(i % 5000));
    return NULL;
}

int main(int count, char **arguments) {
    const char *how = count > 1 ? arguments[1] : "";
    puts("first");
    fflush(stdout);
    if (strcmp(how, "thread") == 0 || strcmp(how, "all") == 0) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, confine, (void *)how) != 0) return 1;
        pthread_join(thread, NULL);
    } else {
        confine((void *)how);
    }
    puts("done");
    fflush(stdout);
    return 6;
}
