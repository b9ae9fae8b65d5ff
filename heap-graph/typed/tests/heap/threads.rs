//! What thread-locals hold, of a program whose source says it.

use typed_heap::{CoreFile, Layered, ScanMemory};

use crate::{Victim, core_of, statics_are_readable};

#[test]
fn thread_locals_hold_blocks() {
    if !statics_are_readable() {
        return;
    }
    let victim = Victim::of("typed_heap_threads");
    let thread = std::fs::read_to_string(victim.folder.path().join("dump.json.thread")).unwrap();
    let thread = u64::from_str_radix(&thread, 16).unwrap();
    let scan = ScanMemory::new(&victim.dump).unwrap();
    // Without the register of the thread nobody knows where its memory is.
    let nowhere = vec!["held from outside of the heap".to_owned()];
    let expected = [
        (vec![], [nowhere.clone(), nowhere]),
        (
            vec![thread, 8],
            [
                vec!["thread-local typed_heap_threads::linux::EAGER".to_owned()],
                vec!["thread-local typed_heap_threads::linux::LAZY".to_owned()],
            ],
        ),
    ];
    for (threads, chains) in expected {
        let path = victim.folder.path().join("core");
        core_of::write(victim.child.id(), &path, &threads);
        let core = CoreFile::open(&path).unwrap();
        let memory = Layered::new(&scan, &core);
        let heap = victim.heap(&memory);
        let why = heap.why();
        for (name, chain) in
            ["[typed_heap_threads::linux::Item]", "[typed_heap_threads::linux::Other]"].iter().zip(chains)
        {
            let block = (0..heap.blocks().len()).find(|block| heap.type_name(*block) == *name).unwrap();
            let names: Vec<String> = why.chain(block).into_iter().map(|holder| holder.name).collect();
            assert_eq!(names, chain, "{name}");
        }
    }
}
