use memory_heap_test::Scope;

fn main() {
    let guard = Scope::named("parse").enter();
    std::thread::spawn(move || drop(guard));
}
