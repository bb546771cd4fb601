//! The changes of a loop so far: the differences between its start and its work. Secrets are taken out, as in a report:
//! what is shown may leave the machine.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use camino::Utf8PathBuf;
use refrain_core::git::{Base, LeftOut, Oid};
use refrain_core::review::Changes;
use refrain_core::text::printable;
use refrain_core::view::report::{self, Trail};
use refrain_core::{LoopId, LoopState};
use refrain_git::{GitError, Repository, TreeRequest};
use refrain_store::journal;

use crate::git_steps::repository::{marked, pinned};
use crate::service::redact::Redactor;
use crate::{EngineError, Service};

/// How long git may take for each answer: a user waits for it.
const LONGEST: Duration = Duration::from_secs(60);
/// How many omitted files are named.
const MOST_NAMED: usize = 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// What is shown, and against what; if nothing can be shown, why.
    pub note: String,
    /// Whether anything can be shown: what follows may be empty all the same, if nothing is different.
    pub is_shown: bool,
    /// The files, with how many lines.
    pub stat: String,
    /// The differences, cut in the middle if they are long; of binary files only the names.
    pub diff: String,
}

impl Service {
    /// The changes of the loop so far: of its folder now while that is its own, else of its last candidate.
    ///
    /// # Errors
    /// [`EngineError`] if there is no such loop, or git cannot be asked.
    pub fn differences(&self, id: &LoopId) -> Result<Differences, EngineError> {
        let dir = self.locate(id)?.dir;
        let whole = journal::whole(&dir, &self.host().signing())?;
        let (state, trail) = (&whole.state, Trail::of(&whole.records));
        let env = marked(&self.host.env, &state.spec);
        let work = report::work(state, &trail);
        let nothing = |note: &str| Ok(Differences { note: note.to_owned(), ..Differences::default() });
        let place = match work {
            report::Work::Folder if !state.spec.worktree.is_dir() => {
                return nothing("The folder that it works in is not there.");
            }
            report::Work::Folder => &state.spec.worktree,
            report::Work::Tree(_) => &self.project.root,
            report::Work::Gone => {
                return nothing("Its folder was given back, and no candidate was taken of it.");
            }
        };
        let repository = match Repository::open_within(place, &env, LONGEST) {
            Ok(repository) => pinned(repository, &state.spec),
            Err(GitError::NotARepository(_)) => {
                return nothing(
                    "It works in a folder without git, which does not know what was changed there.",
                );
            }
            Err(error) => return Err(error.into()),
        };
        let (began, known) = began(state, &repository)?;
        let (tree, left_out) = match work {
            report::Work::Tree(tree) => (tree.clone(), None),
            report::Work::Folder | report::Work::Gone => {
                let index = Index::beside(&dir.index());
                let found = repository.tree_and_rest(TreeRequest {
                    base: state.git.base.as_ref().unwrap_or(&Base::default()),
                    index: &index.0,
                    largest_file: state.spec.git.largest_file,
                    allow_secrets: &state.spec.git.allow_secrets,
                    cancel: None,
                })?;
                (found.0, Some(found.1))
            }
        };
        let Changes { stat, diff, .. } = repository.changes(began.as_ref(), &tree)?;
        let redactor = Redactor::new(&state.spec, []);
        let note = note(began.as_ref(), known, left_out.as_deref(), report::is_open(state));
        Ok(Differences {
            note: redactor.clean(&note),
            is_shown: true,
            stat: redactor.clean(&stat),
            diff: redactor.clean(&diff),
        })
    }
}

/// The commit that it began at, and whether that is on record. If nothing was to be committed or proven, no base was
/// taken: then the head's own log says where it was.
fn began(state: &LoopState, repository: &Repository) -> Result<(Option<Oid>, bool), GitError> {
    match &state.git.base {
        Some(_) => Ok((state.git.began.clone(), true)),
        None => Ok((repository.head_at(state.started_at.as_second())?, false)),
    }
}

/// The description of what is shown.
fn note(began: Option<&Oid>, known: bool, left_out: Option<&[LeftOut]>, is_open: bool) -> String {
    let from = began.map_or("nothing, as it began without a commit".to_owned(), |head| {
        format!("commit {}", &head.as_str()[..head.as_str().len().min(12)])
    });
    let what = match left_out {
        Some(_) if is_open => "Its folder as it is now, with what came after its end",
        Some(_) => "Its folder as it is now",
        None => "Its last candidate",
    };
    let mut note = format!("{what}, against {from}.");
    if !known {
        note.push_str(" What was changed there before it began is shown too: without gates and commits nobody took note of that.");
    }
    let left_out = left_out.unwrap_or_default();
    if !left_out.is_empty() {
        let named: Vec<_> =
            left_out.iter().take(MOST_NAMED).map(|it| format!("{} ({})", it.path, it.why)).collect();
        let more = left_out.len().saturating_sub(MOST_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        note.push_str(&format!(" Not shown: {}{more}.", printable(&named.join(", "))));
    }
    note
}

/// A private index, for as long as it is looked at.
struct Index(Utf8PathBuf);

impl Index {
    /// One that no other loop has.
    fn beside(path: &Utf8PathBuf) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Self(Utf8PathBuf::from(format!("{path}.seen-{}-{number}", std::process::id())))
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
        let _ = fs::remove_file(format!("{}.lock", self.0));
    }
}
