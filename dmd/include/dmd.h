/* DMD, the dark matter detector, finds the stacks that allocated memory which no memory reporter reports.
 *
 * These are the functions of libdmd.so. A program that is not linked with it finds them by dlsym(RTLD_DEFAULT, ...)
 * when it runs under LD_PRELOAD=libdmd.so. In gdb, after `set language c`:
 * call ((int (*)(const char *))DMDReportAndDump)("/tmp/dmd.json")
 *
 * The handler of a signal may call all of these functions, within the limits below: they do not wait for the code that
 * the handler interrupted. If the handler has interrupted this library, its reports mark nothing, and the blocks that
 * it allocates have no stack. A handler must not call dlsym.
 */
#ifndef DMD_H
#define DMD_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Runs the memory reporters of the process and writes all blocks and their reports; gzipped if the name ends
 * in .gz. A null path means the path of the dump at exit. Returns 0, an error number of the system, EBUSY while
 * another thread writes a dump, or -1 if DMD does not record. In the handler of a signal: returns EBUSY if the handler
 * has interrupted an allocation or the freeing of a block, since reporters allocate. Reporters may also wait for locks
 * that the interrupted code holds. */
int DMDReportAndDump(const char *path);

/* Writes all blocks, and the reports made since the last dump. Like DMDReportAndDump, but runs no code of the program:
 * in the handler of a signal it returns EBUSY only if this thread holds a lock of this library, or while another dump
 * is written. */
int DMDDump(const char *path);

/* Whether DMD records the blocks of this process. */
int DMDIsRunning(void);

/* Marks the block that starts here as reported, and returns its usable bytes; 0 if no live block starts here. */
size_t DMDReport(const void *block);

/* Like DMDReport, for a call right after the allocation: the mark stays until the block is freed. */
size_t DMDReportOnAlloc(const void *block);

/* Removes all marks except marks of DMDReportOnAlloc. In the handler of a signal it does nothing if this thread holds
 * a lock of this library. */
void DMDClearReports(void);

#ifdef __cplusplus
}
#endif

#endif
