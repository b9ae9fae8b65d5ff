/* DMD, the dark matter detector: which stacks allocated what no memory reporter reports.
 *
 * The functions of libdmd.so. A program that is not linked with it finds them by dlsym(RTLD_DEFAULT, ...)
 * when it runs under LD_PRELOAD=libdmd.so. In gdb: call (int)DMDReportAndDump("/tmp/dmd.json")
 */
#ifndef DMD_H
#define DMD_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Runs the memory reporters of the process and writes which blocks they reported; gzipped if the name ends
 * in .gz. A null path is that of the dump at the end of the process. Returns 0, an error number of the
 * system, EBUSY while another dump is written, or -1 if nothing is recorded. */
int DMDReportAndDump(const char *path);

/* Writes which blocks there are, and which were reported since the last dump. Otherwise as above. */
int DMDDump(const char *path);

/* Whether blocks of this process are recorded. */
int DMDIsRunning(void);

/* Marks the block that starts here as reported, and returns its usable bytes; 0 if it is no live block. */
size_t DMDReport(const void *block);

/* The same, when the block is allocated: the mark stays until the block is freed. */
size_t DMDReportOnAlloc(const void *block);

/* Takes all marks away but those made on allocation. */
void DMDClearReports(void);

#ifdef __cplusplus
}
#endif

#endif
