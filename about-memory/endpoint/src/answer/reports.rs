//! Reports as metrics, and as Firefox's file.

use memory_export::open_metrics::{self, MetricsForm};
use memory_report::{ReportSet, file};
use memory_reporter::{__private, CollectOptions};

use crate::bounded::BoundedBody;
use crate::options::EndpointOptions;
use crate::response::{RefusedRequest, ResponseBody};

/// The level of compression. It is low because the client waits.
const FAST: u32 = 1;

fn collect(process: String, options: &EndpointOptions) -> ReportSet {
    let collect = CollectOptions::new()
        .anonymize(!options.private)
        .deadline(options.reporter_deadline())
        // The rows of DMD are left out, because they would need symbols.
        .dark_matter(false)
        .process(process);
    __private::collect_alone(&collect)
}

pub(crate) fn metrics(form: MetricsForm, options: &EndpointOptions) -> Result<ResponseBody, RefusedRequest> {
    let set = collect(options.process_name(), options);
    let metrics = open_metrics::OpenMetricsOptions::new().form(form).max_series(options.max_series);
    let bytes = BoundedBody::new(options.max_bytes)
        .fill("the text of all metrics", |body| open_metrics::write(&set, &metrics, body))?;
    Ok(ResponseBody { content_type: form.content_type(), file_name: None, bytes })
}

pub(crate) fn report(is_compressed: bool, options: &EndpointOptions) -> Result<ResponseBody, RefusedRequest> {
    let set = collect(format!("{} (pid {})", options.process_name(), std::process::id()), options);
    let bytes = BoundedBody::new(options.max_bytes).fill("the report", |body| match is_compressed {
        true => file::write_compressed(body, &set, FAST),
        false => file::write_to(body, &set),
    })?;
    let (content_type, file_name) = match is_compressed {
        true => ("application/gzip", "memory-report.json.gz"),
        false => ("application/json", "memory-report.json"),
    };
    Ok(ResponseBody { content_type, file_name: Some(file_name), bytes })
}
