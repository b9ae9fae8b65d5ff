//! `about-memory metrics`, the old spelling of `about-memory export --format openmetrics`.

use clap::Args;

use super::Failure;
use super::export::ExportCommand;
use super::export::format::ExportFormat;

#[derive(Args)]
pub(crate) struct MetricsCommand {
    #[command(flatten)]
    export: ExportCommand,
    /// Keep private data in the names in reports of running processes.
    #[arg(long, hide = true)]
    private: bool,
}

impl MetricsCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        let Self { mut export, private } = self;
        export.format.get_or_insert(ExportFormat::OpenMetrics);
        let is_file = matches!(&*export.sources, [source] if source.process()?.is_none());
        if !private && !is_file {
            export.live.leave_out_private_data();
        }
        export.run()
    }
}
