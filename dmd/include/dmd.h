/* DMD, the dark matter detector: which stacks allocated what no memory reporter reports.
 *
 * The functions of libdmd.so. A program that is not linked with it finds them by dlsym(RTLD_DEFAULT, ...)
 * when it runs under LD_PRELOAD=libdmd.so. In gdb: call (int)DMDReportAndDump("/tmp/dmd.json")
 *
 * The handler of a signal may call all of them, whatever it has interrupted, as far as it is said here: none waits for
 * what was interrupted. What it reports while it has interrupted this library is not marked, and blocks that it
 * allocates there have no stack. dlsym is not for handlers.
 */
#ifndef DMD_H
#define DMD_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Runs the memory reporters of the process and writes which blocks they reported; gzipped if the name ends
 * in .gz. A null path is that of the dump at the end of the process. Returns 0, an error number of the
 * system, EBUSY while another dump is written, or -1 if nothing is recorded. In the handler of a signal: EBUSY if it
 * has interrupted an allocation or the freeing of a block, since reporters allocate; and reporters may wait for other
 * locks that were interrupted. */
int DMDReportAndDump(const char *path);

/* Writes which blocks there are, and which were reported since the last dump. Otherwise as above, but that it runs
 * nothing of the program's: in the handler of a signal it gives EBUSY only if this thread holds a lock of this
 * library. */
int DMDDump(const char *path);

/* Whether blocks of this process are recorded. */
int DMDIsRunning(void);

/* Marks the block that starts here as reported, and returns its usable bytes; 0 if it is no live block. */
size_t DMDReport(const void *block);

/* The same, when the block is allocated: the mark stays until the block is freed. */
size_t DMDReportOnAlloc(const void *block);

/* Takes all marks away but those made on allocation. In the handler of a signal it does nothing if this thread holds a
 * lock of this library. */
void DMDClearReports(void);

#ifdef __cplusplus
}
#endif

#endif
