//! Questions by name. Each is a query over the table `buckets`, and at most a small calculation over its result.
//!
//! In a join, the smaller table comes first: DataFusion keeps that table in memory, and reads the other as a stream.

mod budget;
mod changes;
mod coverage;
mod dark;
mod growth;
mod leaks;
mod outliers;
mod scope;
mod versions;

use std::path::PathBuf;

use crate::answer::Answer;
use crate::batch_columns::BatchColumns;
use crate::buckets::is_id;
use crate::error::FleetError;
use crate::session::{FleetSession, QuestionSubject};

pub(crate) use scope::quoted;
pub(crate) use versions::deployments;

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Question {
    /// The growth of each path between two days.
    Growth,
    /// The versions that made a path grow.
    Versions,
    /// The paths that grow in a process until it restarts.
    Leaks,
    /// The days on which a path's level changed.
    Changes,
    /// The processes that hold more than their peers.
    Outliers,
    /// The memory that no report counts.
    Dark,
    /// The processes that stopped reporting.
    Coverage,
    /// The processes that exceed the limits of a budget file.
    Budget(PathBuf),
}

/// What a question is about.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuestionOptions {
    /// Only this service.
    pub service: Option<String>,
    /// Only this path and the paths below it.
    pub path: String,
    /// Only this version.
    pub version: Option<String>,
    /// The maximum number of rows; 0 stands for all.
    pub limit: usize,
}

impl Default for QuestionOptions {
    fn default() -> Self {
        Self { service: None, path: "explicit".to_owned(), version: None, limit: 20 }
    }
}

/// Whether a row has the id of a stack as its path.
fn has_ids(answer: &Answer) -> bool {
    let paths = BatchColumns(&answer.rows).texts("path");
    paths.is_ok_and(|paths| paths.iter().flatten().any(is_id))
}

impl FleetSession {
    /// Answers a question.
    ///
    /// # Errors
    ///
    /// Returns an error if the tables have no reports, or if a query fails.
    pub async fn ask(&self, question: &Question, options: &QuestionOptions) -> Result<Answer, FleetError> {
        let is_about_stacks = self.subject() == QuestionSubject::Stacks;
        if is_about_stacks && matches!(question, Question::Dark | Question::Coverage | Question::Budget(_)) {
            return Err(FleetError::Usage("this question is about reports, not about stacks".to_owned()));
        }
        if self.measured().is_empty() {
            let reason = match is_about_stacks {
                false => "has no reports in these days; add some with memory-fleet import or collect",
                true => {
                    "has no stacks in these days; add some with memory-fleet collect, or about-memory export --append-to"
                }
            };
            return Err(FleetError::at(self.root(), reason));
        }
        let mut answer = match question {
            Question::Growth => growth::ask(self, options).await,
            Question::Versions => versions::ask(self, options).await,
            Question::Leaks => leaks::ask(self, options).await,
            Question::Changes => changes::ask(self, options).await,
            Question::Outliers => outliers::ask(self, options).await,
            Question::Dark => dark::ask(self, options).await,
            Question::Coverage => coverage::ask(self, options).await,
            Question::Budget(file) => budget::ask(self, options, file).await,
        }?
        .limited(options.limit);
        if is_about_stacks && has_ids(&answer) {
            answer.notes.push(
                "A path in parentheses is the id of a stack without function names, and differs between builds."
                    .to_owned(),
            );
        }
        answer.notes.extend(self.warnings().iter().map(|warning| format!("warning: {warning}")));
        Ok(answer)
    }

    /// Runs a user's query, which may only read.
    ///
    /// # Errors
    ///
    /// Returns DataFusion's error.
    pub async fn ask_sql(&self, sql: &str, limit: usize) -> Result<Answer, FleetError> {
        let most = (limit > 0).then(|| limit.saturating_add(1));
        let mut answer = Answer::from_batches(&self.first_rows(sql, most).await?)?;
        if limit > 0 && answer.rows.num_rows() > limit {
            answer.title = format!("The first {limit} rows; --limit 0 shows all");
            answer.rows = answer.rows.slice(0, limit);
        }
        answer.notes.extend(self.warnings().iter().map(|warning| format!("warning: {warning}")));
        Ok(answer)
    }
}
