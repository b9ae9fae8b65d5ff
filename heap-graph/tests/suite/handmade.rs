//! Small constructed snapshots, valid and invalid, with Firefox's verdicts.

use crate::golden;

#[test]
fn every_handmade_snapshot_is_taken_or_refused_as_by_firefox() {
    let verdicts = golden::entries(&golden::raw("handmade/verdicts.json"));
    assert_eq!(verdicts.len(), 81);
    let mut wrong = Vec::new();
    for (name, verdict) in &verdicts {
        let keys: Vec<_> = golden::entries(verdict).into_iter().map(|(key, _)| key).collect();
        let taken = keys.contains(&"accepted".to_owned());
        match heap_graph::snapshot::read(golden::path(&format!("handmade/{name}.fxsnapshot"))) {
            Ok(graph) if taken => {
                let time = graph.creation_time().map_or("null".to_owned(), |time| time.to_string());
                assert_eq!(golden::entry(verdict, "creationTime").get(), time, "{name}");
            }
            Ok(_) => wrong.push(format!("{name}: taken")),
            Err(error) if taken => wrong.push(format!("{name}: refused: {error}")),
            Err(error) => println!("{name}: {error}"),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
