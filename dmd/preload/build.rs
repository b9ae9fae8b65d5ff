//! Tells the build script of `about-memory`, which builds `libdmd.so`, where the sources are.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::metadata=manifest-dir={}", env!("CARGO_MANIFEST_DIR"));
}
