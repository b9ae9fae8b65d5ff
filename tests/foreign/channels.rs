//! Channels, queues and tasks.

use memory_reporter::Collection;

use crate::{at_least, ways};

#[test]
fn channels_with_a_bound_have_a_slot_for_each_message() {
    let crossbeam = || crossbeam_channel::bounded::<[u8; 100]>(100).1;
    at_least("crossbeam-channel", 90, crossbeam, ways::crossbeam_channel::measure);
    let queue = || crossbeam_queue::ArrayQueue::<[u8; 100]>::new(100);
    at_least("crossbeam-queue", 90, queue, ways::crossbeam_queue::measure);
    let channel = || async_channel::bounded::<[u8; 100]>(100).1;
    at_least("async-channel", 90, channel, ways::async_channel::measure);
}

#[test]
fn channels_without_a_bound_hold_the_messages_that_wait() {
    let crossbeam = || {
        let (sender, receiver) = crossbeam_channel::unbounded();
        (0..100).for_each(|i| sender.send([i; 100]).unwrap());
        receiver
    };
    at_least("crossbeam-channel", 70, crossbeam, ways::crossbeam_channel::measure);
    let flume = || {
        let (sender, receiver) = flume::unbounded();
        (0..100).for_each(|i| sender.send([i; 100]).unwrap());
        receiver
    };
    at_least("flume", 70, flume, ways::flume::measure);
    let channel = || {
        let (sender, receiver) = async_channel::unbounded();
        (0..100).for_each(|i| sender.try_send([i; 100]).unwrap());
        receiver
    };
    at_least("async-channel", 70, channel, ways::async_channel::measure);
    let tokio = || {
        let (sender, receiver) = tokio::sync::mpsc::channel(1000);
        (0..100).for_each(|i| sender.try_send([i; 100]).unwrap());
        (sender, receiver)
    };
    at_least("tokio", 60, tokio, |(sender, _), ops| ways::tokio::measure(sender, ops));
}

#[test]
fn tasks_are_counted() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    (0..3).for_each(|_| drop(runtime.spawn(std::future::pending::<()>())));
    let tasks = ways::tokio_tasks::Tasks(runtime.handle().clone());
    let set = Collection::new().with(&tasks).collect();
    let rows: Vec<_> = set.iter().map(|report| (report.path, report.amount)).collect();
    assert_eq!(rows, [("tokio-tasks", 3)]);
}
