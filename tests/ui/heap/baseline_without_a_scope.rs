use memory_heap_test::assert_heap_baseline;

fn main() {
    assert_heap_baseline!("tests/heap/parse.txt");
}
