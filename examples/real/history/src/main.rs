//! `history REPOSITORY` walks a git repository with gix, on two threads. It prints who changed which file most often.

use std::collections::HashMap;
use std::thread;

use gix::bstr::BString;
use gix::{ObjectId, ThreadSafeRepository};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// A change of a file.
struct Change {
    commit: ObjectId,
    author: BString,
    seconds: i64,
    summary: String,
}

#[derive(Default)]
struct History {
    files: HashMap<BString, Vec<Change>>,
    commits: usize,
}

impl History {
    fn read(repository: &ThreadSafeRepository, commits: &[ObjectId]) -> Result<Self, Error> {
        let mut repository = repository.to_thread_local();
        repository.object_cache_size(16 << 20);
        let mut history = Self::default();
        for &id in commits {
            history.add(&repository, id)?;
        }
        Ok(history)
    }

    fn add(&mut self, repository: &gix::Repository, id: ObjectId) -> Result<(), Error> {
        let commit = repository.find_commit(id)?;
        let parent = match commit.parent_ids().next() {
            Some(parent) => parent.object()?.into_commit().tree()?,
            None => repository.empty_tree(),
        };
        let author = commit.author()?;
        let (name, seconds) = (author.name.to_owned(), author.time()?.seconds);
        let summary = commit.message()?.summary().to_string();
        parent.changes()?.for_each_to_obtain_tree(&commit.tree()?, |change| {
            if change.entry_mode().is_blob() {
                self.files.entry(change.location().to_owned()).or_default().push(Change {
                    commit: id,
                    author: name.clone(),
                    seconds,
                    summary: summary.clone(),
                });
            }
            Ok(std::ops::ControlFlow::Continue(()))
        })?;
        self.commits += 1;
        Ok(())
    }

    fn merge(&mut self, other: Self) {
        self.commits += other.commits;
        for (file, changes) in other.files {
            self.files.entry(file).or_default().extend(changes);
        }
    }
}

fn main() -> Result<(), Error> {
    let path = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    let repository = gix::open(path)?;
    let head = repository.head_id()?;
    let commits = repository.rev_walk([head]).all()?;
    let commits: Vec<ObjectId> = commits.map(|commit| Ok(commit?.id)).collect::<Result<_, Error>>()?;
    let repository = repository.into_sync();

    let (older, newer) = commits.split_at(commits.len() / 2);
    let history = thread::scope(|scope| {
        let walks = [older, newer].map(|half| scope.spawn(|| History::read(&repository, half)));
        let mut history = History::default();
        for walk in walks {
            history.merge(walk.join().expect("a walk does not panic")?);
        }
        Ok::<_, Error>(history)
    })?;

    let changes: usize = history.files.values().map(Vec::len).sum();
    println!("{} commits changed {} files {changes} times", history.commits, history.files.len());
    let mut files: Vec<_> = history.files.iter().collect();
    files.sort_by_key(|(path, changes)| (std::cmp::Reverse(changes.len()), *path));
    for (path, changes) in files.iter().take(5) {
        let mut authors: HashMap<&BString, usize> = HashMap::new();
        for change in *changes {
            *authors.entry(&change.author).or_default() += 1;
        }
        let most =
            authors.iter().max_by_key(|&(author, count)| (count, author)).expect("a change has an author");
        let last =
            changes.iter().max_by_key(|change| (change.seconds, change.commit)).expect("a file has a change");
        println!("{path}: {} changes, most by {}, last: {}", changes.len(), most.0, last.summary);
    }
    Ok(())
}
