//! libdmd.so: DMD for any Linux program, by `LD_PRELOAD`.
