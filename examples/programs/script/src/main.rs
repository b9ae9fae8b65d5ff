//! Runs a script that builds a table of people. Lines that end in `// +` are added to account for memory.

use boa_engine::{Context, Source};

memory_reporter::global_allocator!(std::alloc::System); // +

const SCRIPT: &str = r#"
var people = [];
var byName = new Map();
for (let i = 0; i < COUNT; i++) {
    let person = {
        id: i,
        name: "person number " + i,
        tags: ["a" + i, "b" + i],
        address: { zip: i * 7, city: "city " + (i % 100) },
        greet() { return "hello, " + this.name },
    };
    people.push(person);
    byName.set(person.name, person);
}
people.map(person => person.greet().length).reduce((sum, length) => sum + length, 0) + byName.size;
"#;

fn main() {
    let count = std::env::args().nth(1).unwrap_or_else(|| "20000".to_owned());
    let script = SCRIPT.replace("COUNT", &count);
    let tag = memory_reporter::tag("explicit/js"); // +
    let mut context = Context::default();
    let value = context.eval(Source::from_bytes(&script)).expect("the script is valid");
    drop(tag); // +
    println!("{}", value.display());
    println!("{}", about_memory::text(&memory_reporter::collect_reports(&Default::default())).verbose(true)); // +
}
