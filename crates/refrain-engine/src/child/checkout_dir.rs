//! The folder of gates with `--clean-checkout`: it holds the candidate and nothing else of the worktree. `refrain-git`
//! fills it, `refrain-store` chooses it.

use std::fs;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::AttemptId;
use refrain_core::git::{Oid, RepoPath};
use refrain_core::protect::{ProtectionBreach, Rule};
use refrain_git::{Cancel, CleanRequest, FolderSnapshot, GitError, PreparedCheckout, Repository};
use refrain_store::{CleanPlace, DiskError, Project, write_atomic};

use crate::chain;
use crate::git_steps::git_words;
use crate::git_steps::repository::Job;

/// The checkout that the loop has for it, once it needed one.
pub(crate) type CheckoutDir = Arc<Mutex<Option<CleanCheckout>>>;

/// Where a gate of this run is started, or why it cannot be.
pub(crate) type Ready = Result<Utf8PathBuf, String>;

/// A folder that candidates are checked out to.
#[derive(Debug)]
pub(crate) struct CleanCheckout {
    place: CleanPlace,
    /// Files that gates before the first iteration left in it: nothing else stays from one verification to the next, as
    /// later gates run what the agent wrote. Kept in memory, as an agent could write a file; at first these are the
    /// files that the loop before left.
    kept: FolderSnapshot,
    /// What the gates left that verify the current candidate.
    verification: Option<Verification>,
    /// A gate was started there, and what it wrote is not in the list yet.
    is_used: bool,
    /// The protected content there when the last gate began, until it is compared.
    protected: Option<Oid>,
    /// Whether a gate ran there since it was compared.
    is_unseen: bool,
    /// What gates touched of it since the candidate was taken.
    touched: Vec<ProtectionBreach>,
}

/// The gates after one attempt that run on one tree.
#[derive(Debug)]
struct Verification {
    of: AttemptId,
    tree: Oid,
    /// What they left so far; none before the first has ended.
    left: Option<FolderSnapshot>,
}

impl CleanCheckout {
    /// One that no other loop has.
    pub(crate) fn take(project: &Project, state_home: &Utf8Path) -> Result<Self, DiskError> {
        let place = CleanPlace::take(project, state_home)?;
        let kept = FolderSnapshot::from_bytes(&fs::read(place.kept()).unwrap_or_default());
        Ok(Self {
            place,
            kept,
            verification: None,
            is_used: false,
            protected: None,
            is_unseen: false,
            touched: Vec::new(),
        })
    }

    pub(crate) fn folder(&self) -> Utf8PathBuf {
        self.place.folder()
    }

    /// Makes it hold a tree, what lies over it, and what gates left that git ignores.
    pub(crate) fn fill(
        &self,
        repository: &Repository,
        (tree, over): (&Oid, &[PreparedCheckout]),
        cancel: Option<&Cancel>,
    ) -> Result<(), GitError> {
        let (folder, index) = (self.place.folder(), self.place.index());
        let left = self.verification.as_ref().and_then(|verification| verification.left.as_ref());
        let kept = left.unwrap_or(&self.kept);
        repository.check_out_clean(CleanRequest { tree, over, folder: &folder, kept, index: &index, cancel })
    }

    /// The gates that follow verify this tree after this attempt, or are asked before the first one.
    fn begin(&mut self, of: Option<AttemptId>, tree: &Oid) {
        self.verification = of.map(|of| match self.verification.take() {
            Some(current) if current.of == of && current.tree == *tree => current,
            _ => Verification { of, tree: tree.clone(), left: None },
        });
    }

    /// Keeps what gates left there: for the next one of their verification, or, if they ran on trusted content, for all
    /// that follow.
    pub(crate) fn keep(&mut self) {
        // Without a list the next gate has no caches.
        let list = FolderSnapshot::list(&self.place.folder()).unwrap_or_default();
        match &mut self.verification {
            Some(verification) => verification.left = Some(list),
            None => {
                self.kept = list;
                self.store();
            }
        }
    }

    fn store(&self) {
        // Leftovers that the file does not list are made again.
        let _ = write_atomic(&self.place.kept(), &self.kept.to_bytes());
    }

    /// Releases it. The next user of it finds what is kept.
    pub(crate) fn leave(self) {
        self.store();
        self.place.leave();
    }

    /// Compares what is protected with what it was when the last gate began.
    fn compare(&mut self, job: &Job, repository: &Repository) -> Result<(), GitError> {
        if !std::mem::take(&mut self.is_unseen) {
            return Ok(());
        }
        let (folder, index) = (self.place.folder(), self.place.index());
        let touched = job.touched_in(repository, (&folder, &index), self.protected.take().as_ref())?;
        self.touched.extend(touched);
        Ok(())
    }
}

fn locked(ground: &CheckoutDir) -> MutexGuard<'_, Option<CleanCheckout>> {
    ground.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A gate has ended: the files it wrote are listed. If something of it still runs, they are listed again once it is
/// gone.
pub(crate) fn keep(ground: &CheckoutDir, is_left: bool) {
    if let Some(checkout) = locked(ground).as_mut().filter(|checkout| checkout.is_used) {
        checkout.keep();
        checkout.is_used = is_left;
    }
}

impl Job {
    /// The paths that gates of the candidate touched in the clean checkout. A candidate that was only just taken has
    /// none.
    pub(crate) fn touched_by_gates(
        &self,
        repository: &Repository,
    ) -> Result<Vec<ProtectionBreach>, GitError> {
        let mut ground = locked(&self.ground);
        let Some(checkout) = ground.as_mut() else { return Ok(Vec::new()) };
        if self.state.proving().is_none_or(|proving| proving.candidate.is_none()) {
            checkout.is_unseen = false;
            checkout.touched.clear();
        }
        checkout.compare(self, repository)?;
        Ok(checkout.touched.clone())
    }
}

fn frozen(touched: &ProtectionBreach) -> Option<&RepoPath> {
    match touched {
        ProtectionBreach::Path(violation) if violation.rule != Rule::Existing => Some(&violation.path),
        ProtectionBreach::Path(_)
        | ProtectionBreach::Part(_)
        | ProtectionBreach::Program(_)
        | ProtectionBreach::Link(_)
        | ProtectionBreach::Hidden(_)
        | ProtectionBreach::Unlike(_)
        | ProtectionBreach::Submodule(_) => None,
    }
}

/// Makes the ground hold the candidate that is to be proven; returns the folder in it that corresponds to the one that
/// the agent works in.
pub(crate) fn prepare(job: &Job) -> Ready {
    let spec = &job.state.spec;
    let proving = job.state.proving();
    let candidate = proving.and_then(|proving| proving.candidate.as_ref());
    let tree = candidate.and_then(|candidate| candidate.tree.as_ref());
    let (Some(proving), Some(candidate), Some(tree)) = (proving, candidate, tree) else {
        return Err("there is no candidate that could be checked out".to_owned());
    };
    let mut ground = locked(&job.ground);
    let checkout = match ground.take() {
        Some(checkout) => checkout,
        None => Project::find(&spec.project)
            .and_then(|project| CleanCheckout::take(&project, &job.state_home))
            .map_err(|error| chain(&error))?,
    };
    let checkout = ground.insert(checkout);
    let folder = checkout.folder();
    let made = job.worktree().and_then(|repository| {
        checkout.compare(job, &repository)?;
        checkout.is_used = false;
        checkout.begin(proving.of, tree);
        // Restores frozen paths that were touched: a gate that the agent rewrote proves nothing.
        let base = job.state.git.base.as_ref().and_then(|base| base.protected.as_ref());
        let frozen = candidate.touched.iter().filter_map(frozen);
        let over = base.map_or_else(|| Ok(Vec::new()), |base| repository.as_they_were(base, frozen))?;
        checkout.fill(&repository, (tree, &over), Some(&job.cancel))?;
        checkout.protected = job.protected_in(&repository, (&folder, &checkout.place.index()))?;
        (checkout.is_used, checkout.is_unseen) = (true, true);
        Ok(())
    });
    made.map_err(|error| {
        format!("the clean checkout cannot be made: {}", git_words::say(&error, git_words::LONGEST))
    })?;
    let inside = spec.working_dir.strip_prefix(&spec.worktree).unwrap_or(Utf8Path::new(""));
    let at = folder.join(inside);
    match at.is_dir() {
        true => Ok(at),
        false => Err(format!("the clean checkout has no folder {inside}: nothing in it is committed or new")),
    }
}
