//! Compiles C code when the tests run, and loads it into them.

use std::ffi::{CString, c_int, c_long, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The function that C functions call back.
pub(crate) type Next = extern "C-unwind" fn(*mut c_void) -> c_long;

/// The type of the function of [`FUNCTIONS`]. It takes the shape, the callback and its argument.
pub(crate) type Pass = extern "C-unwind" fn(c_int, Next, *mut c_void) -> c_long;

pub(crate) const FUNCTIONS: &str = include_str!("functions.c");

/// The number of shapes that `pass` supports.
pub(crate) const SHAPES: c_int = 11;

/// A loaded library. `drop` does not unload it.
pub(crate) struct Library(*mut c_void);

/// Compiles `source` to a shared library in `folder`.
pub(crate) fn build(folder: &Path, name: &str, source: &str, options: &[&str]) -> PathBuf {
    let file = folder.join(format!("{name}.c"));
    std::fs::write(&file, source).unwrap();
    let library = folder.join(format!("lib{name}.so"));
    let output = Command::new("cc")
        .args(["-shared", "-fPIC", "-w", "-o"])
        .arg(&library)
        .args(options)
        .arg(&file)
        .output()
        .expect("a C compiler runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    library
}

impl Library {
    pub(crate) fn open(path: &Path) -> Library {
        let name = CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: the name ends in 0. The library has only the compiler's own constructors.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null(), "{} does not load", path.display());
        Library(handle)
    }

    pub(crate) fn symbol(&self, name: &str) -> *mut c_void {
        let name = CString::new(name).unwrap();
        // SAFETY: `open` got the handle, only `close` closes it, and the name ends in 0.
        let address = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        assert!(!address.is_null(), "{name:?} is missing");
        address
    }

    pub(crate) fn pass(&self) -> Pass {
        // SAFETY: the C source defines `pass` with this type.
        unsafe { std::mem::transmute(self.symbol("pass")) }
    }

    pub(crate) fn close(self) {
        // SAFETY: the handle is open, and the tests call no function of the library after this.
        let error = unsafe { libc::dlclose(self.0) };
        assert_eq!(error, 0);
    }
}

/// [`FUNCTIONS`] with and without frame pointers, at several levels of optimization.
pub(crate) fn variants(folder: &Path) -> Vec<Library> {
    let variants: [(&str, &[&str]); 6] = [
        ("plain", &["-O0"]),
        ("plain_without", &["-O0", "-fomit-frame-pointer"]),
        ("fast", &["-O2", "-fomit-frame-pointer"]),
        ("fast_with", &["-O2", "-fno-omit-frame-pointer"]),
        ("tiny", &["-Os", "-fomit-frame-pointer", "-mno-red-zone"]),
        ("pushing", &["-O2", "-fomit-frame-pointer", "-maccumulate-outgoing-args", "-mstackrealign"]),
    ];
    variants.iter().map(|(name, options)| Library::open(&build(folder, name, FUNCTIONS, options))).collect()
}
