//! What a question reads, as SQL, and the commands that lead on.

use super::QuestionOptions;
use crate::session::{FleetSession, QuestionSubject};

/// A text as a literal of SQL.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A word of a shell's command.
pub(super) fn word(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=@%+".contains(&byte);
    match !text.is_empty() && text.bytes().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

impl QuestionOptions {
    /// The condition on rows of `buckets`.
    pub(crate) fn condition(&self) -> String {
        let mut all = vec!["units = 'bytes'".to_owned(), self.path_condition()];
        all.extend(self.life_conditions());
        all.join(" AND ")
    }

    /// The condition on the service and the version.
    pub(super) fn life_condition(&self) -> String {
        let all: Vec<String> = self.life_conditions().collect();
        if all.is_empty() { "true".to_owned() } else { all.join(" AND ") }
    }

    fn life_conditions(&self) -> impl Iterator<Item = String> {
        let service = self.service.as_ref().map(|service| format!("service = {}", quoted(service)));
        let version = self.version.as_ref().map(|version| format!("version = {}", quoted(version)));
        service.into_iter().chain(version)
    }

    fn path_condition(&self) -> String {
        let path = self.path.trim_end_matches('/');
        if path.is_empty() {
            return "true".to_owned();
        }
        format!("(path = {} OR starts_with(path, {}))", quoted(path), quoted(&format!("{path}/")))
    }
}

impl FleetSession {
    /// A command about the same tables.
    pub(super) fn command(&self, question: &str, service: &str, rest: &str) -> String {
        let root = word(&self.root().to_string_lossy());
        let subject = if self.subject() == QuestionSubject::Stacks { " --stacks" } else { "" };
        format!("memory-fleet {question} {root}{subject} --service {}{rest}", word(service))
    }
}
