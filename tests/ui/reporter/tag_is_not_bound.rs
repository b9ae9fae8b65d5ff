#![deny(unused_must_use)]

fn main() {
    memory_reporter::tag("explicit/js");
}
