use memory_reporter::{MemoryReporter, Reports, collect_report};
use tokio::runtime::Handle;

pub struct Tasks(pub Handle);

impl MemoryReporter for Tasks {
    fn collect_reports(&self, out: &mut Reports) {
        let tasks = self.0.metrics().num_alive_tasks();
        collect_report!(out, "tokio-tasks", Other, Count, tasks, "The number of tasks that have not ended.");
    }
}
