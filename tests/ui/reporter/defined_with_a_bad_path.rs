memory_reporter::define_reporter!("/textures", NonHeap, Bytes, 4096, "Memory mapped for textures.");

fn main() {}
