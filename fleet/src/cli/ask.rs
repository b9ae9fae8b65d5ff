//! The questions, and `query`.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use memory_report::new_file::{self, Readers};

use super::Outcome;
use crate::answer::{Answer, AnswerFormat};
use crate::day::Day;
use crate::engine::QueryEngine;
use crate::error::FleetError;
use crate::folder::DayRange;
use crate::questions::{Question, QuestionOptions};
use crate::session::{FleetSession, QuestionSubject, SessionOptions};

#[derive(Subcommand)]
pub(super) enum AskCommand {
    /// Show how much each path grew between two days
    #[command(
        after_help = "Examples:\n  memory-fleet growth fleet\n  memory-fleet growth fleet --service search --from 2026-11-01 --to 2026-11-22"
    )]
    Growth(QuestionArguments),
    /// Show which versions made a path grow, compared with the version before at the same age of the processes
    #[command(
        after_help = "Examples:\n  memory-fleet versions fleet\n  memory-fleet versions fleet --service search --path explicit/cache"
    )]
    Versions(QuestionArguments),
    /// Show the paths that grow until their process restarts
    #[command(
        after_help = "Examples:\n  memory-fleet leaks fleet\n  memory-fleet leaks fleet --service search --format json\n  memory-fleet leaks fleet --stacks"
    )]
    Leaks(QuestionArguments),
    /// Show the days on which a path changed its level, and the version deployed then
    #[command(
        after_help = "Examples:\n  memory-fleet changes fleet\n  memory-fleet changes fleet --service search --path explicit/cache"
    )]
    Changes(QuestionArguments),
    /// Show the processes that hold much more than their peers, and the path that they hold more of
    #[command(
        after_help = "Examples:\n  memory-fleet outliers fleet\n  memory-fleet outliers fleet --service search --version 1.2"
    )]
    Outliers(QuestionArguments),
    /// Show the share of the heap that no report counts, by service and version
    #[command(after_help = "Example:\n  memory-fleet dark fleet")]
    Dark(QuestionArguments),
    /// Show the processes that stopped reporting
    #[command(after_help = "Example:\n  memory-fleet coverage fleet --service search")]
    Coverage(QuestionArguments),
    /// Show the processes that exceed the limits of a budget file of about-memory
    #[command(after_help = "Example:\n  memory-fleet budget fleet memory-budget.toml")]
    Budget(BudgetArguments),
    /// Run a query in SQL; it can only read
    #[command(
        after_help = "Tables: reports, warnings, stacks, frames, census, and buckets (the mean of each path of a process \
                      in 6 hours).\n\nExamples:\n  memory-fleet query fleet \"SELECT service, count(*) FROM reports \
                      GROUP BY service\"\n  memory-fleet query fleet \"DESCRIBE buckets\""
    )]
    Query(QueryArguments),
}

#[derive(Args)]
pub(super) struct SourceArguments {
    /// The folder of the tables
    folder: PathBuf,
    /// Read only this day and later days, such as 2026-11-22
    #[arg(long, value_name = "DATE")]
    from: Option<Day>,
    /// Read only this day and earlier days
    #[arg(long, value_name = "DATE")]
    to: Option<Day>,
    /// Show at most this many rows; 0 shows all
    #[arg(long, value_name = "ROWS", default_value_t = 20)]
    limit: usize,
    /// The format of the answer
    #[arg(long, value_enum, default_value_t = AnswerFormat::Text)]
    format: AnswerFormat,
    /// Write the answer to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The maximum number of megabytes (MiB) for sorting and grouping; more goes to temporary files
    #[arg(long, value_name = "MIB", default_value_t = 2048, value_parser = clap::value_parser!(u32).range(16..))]
    memory: u32,
    /// The number of threads [default: one for each processor]
    #[arg(long, value_name = "THREADS", default_value_t = 0, hide_default_value = true)]
    threads: usize,
    /// The engine: local, or ballista://HOST:PORT of a scheduler that reads the same folder at the same path
    #[arg(long, value_name = "ENGINE", default_value_t = QueryEngine::Local)]
    engine: QueryEngine,
}

#[derive(Args)]
pub(super) struct QuestionArguments {
    #[command(flatten)]
    source: SourceArguments,
    /// Only this service
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    /// Only this path and the paths below it; an empty path stands for all [default: explicit; all with --stacks]
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// Ask about the stacks of profiles, dumps and recordings, not about the paths of reports
    #[arg(long)]
    stacks: bool,
    /// Only this version
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
}

#[derive(Args)]
pub(super) struct BudgetArguments {
    #[command(flatten)]
    question: QuestionArguments,
    /// The budget, as about-memory check reads it
    budget: PathBuf,
}

#[derive(Args)]
pub(super) struct QueryArguments {
    #[command(flatten)]
    source: SourceArguments,
    /// The query
    sql: String,
}

impl AskCommand {
    pub(super) async fn run(self) -> Result<Outcome, FleetError> {
        let (question, arguments) = match self {
            Self::Growth(arguments) => (Question::Growth, arguments),
            Self::Versions(arguments) => (Question::Versions, arguments),
            Self::Leaks(arguments) => (Question::Leaks, arguments),
            Self::Changes(arguments) => (Question::Changes, arguments),
            Self::Outliers(arguments) => (Question::Outliers, arguments),
            Self::Dark(arguments) => (Question::Dark, arguments),
            Self::Coverage(arguments) => (Question::Coverage, arguments),
            Self::Budget(arguments) => (Question::Budget(arguments.budget), arguments.question),
            Self::Query(QueryArguments { source, sql }) => {
                let reports = QuestionSubject::Reports;
                let answer =
                    source.answer(reports, async |session| session.ask_sql(&sql, source.limit).await).await?;
                source.write(&answer)?;
                return Ok(Outcome::Done);
            }
        };
        let QuestionArguments { source, service, path, version, stacks } = arguments;
        let (subject, all) = match stacks {
            true => (QuestionSubject::Stacks, String::new()),
            false => (QuestionSubject::Reports, QuestionOptions::default().path),
        };
        let options = QuestionOptions { service, path: path.unwrap_or(all), version, limit: source.limit };
        let answer = source.answer(subject, async |session| session.ask(&question, &options).await).await?;
        source.write(&answer)?;
        let is_exceeded = matches!(question, Question::Budget(_)) && answer.rows.num_rows() > 0;
        Ok(if is_exceeded { Outcome::Exceeded } else { Outcome::Done })
    }
}

impl SourceArguments {
    fn open(&self, subject: QuestionSubject) -> Result<FleetSession, FleetError> {
        let options = SessionOptions {
            memory: (self.memory as usize) << 20,
            threads: self.threads,
            days: DayRange { from: self.from, to: self.to },
            engine: self.engine.clone(),
            subject,
        };
        FleetSession::open(&self.folder, &options)
    }

    /// Opens the tables and asks; again if a compaction deletes files meanwhile.
    async fn answer(
        &self,
        subject: QuestionSubject,
        ask: impl AsyncFn(&FleetSession) -> Result<Answer, FleetError>,
    ) -> Result<Answer, FleetError> {
        const TRIES: usize = 5;
        let mut tries = 0;
        loop {
            let session = self.open(subject)?;
            match ask(&session).await {
                Err(FleetError::Query(_)) if tries < TRIES && session.is_stale() => tries += 1,
                asked => return asked,
            }
        }
    }

    fn write(&self, answer: &Answer) -> Result<(), FleetError> {
        // A Parquet file has the rows only.
        if self.format == AnswerFormat::Parquet {
            for note in &answer.notes {
                let _ = writeln!(io::stderr(), "memory-fleet: {note}");
            }
        }
        let Some(path) = &self.output else {
            if self.format == AnswerFormat::Parquet && io::stdout().is_terminal() {
                return Err(FleetError::Usage("parquet is binary: use --output FILE".to_owned()));
            }
            return answer.write(self.format, io::stdout());
        };
        new_file::write(path, Readers::Umask, |file| {
            answer.write(self.format, file).map_err(|error| match error {
                FleetError::Output(error) => error,
                error => io::Error::other(error.to_string()),
            })
        })
        .map_err(|error| FleetError::at(path, error))
    }
}
