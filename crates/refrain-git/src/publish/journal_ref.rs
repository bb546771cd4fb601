//! The reference of a loop at a remote, `refs/refrain/ID/journal`. Its commit has the loop's journal, logs and trees in
//! its tree, and the head of the loop's branch among its parents. It is moved by compare-and-swap only: of two machines
//! that claim a loop, one succeeds. No hook is run, and no other reference is fetched or pushed.

mod replica;

use std::time::Duration;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use refrain_core::LoopId;
use refrain_core::git::Oid;
use refrain_core::glob::PathGlob;
use refrain_core::r#loop::RemoteLoop;
use refrain_proc::tool::ToolOutput;

use super::{BRINGING, Destination, LOOKING, Upstream, random, without_password};
use crate::candidate::{Rules, stage};
use crate::commit::message::OWN_IDENTITY;
use crate::error::GitError;
use crate::plumbing::commit_config::configured;
use crate::plumbing::git::{Git, oid, said};
use crate::publish::refusal::{PushResult, Refusal, of_push, of_transport};
use crate::repository::Repository;

pub use replica::{Holder, Places};

/// The folder of the loop's files in the tree of the commit.
const FILES: &str = "files/";

const REFS: &str = "refs/refrain/";
const JOURNAL: &str = "/journal";

fn name_of(id: &LoopId) -> String {
    format!("{REFS}{id}{JOURNAL}")
}

const LOOP: &str = "Refrain-Loop";
const FENCE: &str = "Refrain-Fence";
const SEQ: &str = "Refrain-Seq";
/// Only in a commit that claims the loop: the name of the machine.
const HOLDER: &str = "Refrain-Holder";
/// Only there too: a number that no other claim has.
const CLAIM: &str = "Refrain-Claim";

#[derive(Debug)]
pub struct JournalRef<'a> {
    repository: &'a Repository,
    upstream: Upstream,
    name: String,
    id: &'a LoopId,
    limits: (Duration, Duration),
}

/// A commit of the reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalCommit {
    pub found: RemoteLoop,
    /// The loop's files, relative to its folder, with the object and the size of each.
    pub files: Vec<(Utf8PathBuf, Oid, u64)>,
}

/// What a commit of the reference is made of.
#[derive(Debug)]
pub struct NewJournalCommit<'a> {
    pub previous: Option<&'a Oid>,
    pub head: &'a Oid,
    /// The loop's files, relative to its folder, as objects.
    pub files: &'a [(Utf8PathBuf, Oid)],
    /// Trees that the journal names.
    pub trees: &'a [Oid],
    pub fence: u64,
    /// How many records the journal has.
    pub seq: u64,
    /// The path of a private index.
    pub index: &'a Utf8Path,
}

/// What became of moving the reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Swap {
    Done,
    /// It was not where it was expected, so nothing was moved.
    Stale,
    /// The remote did not move it.
    Refused(Refusal),
    /// Whether it was moved is unknown.
    Unknown(Refusal),
}

/// Loops, each with the commit of its reference.
type LoopHeads = Vec<(LoopId, Oid)>;

impl Repository {
    /// The reference of a loop at a remote: the name of a configured one, a path from `dir`, or an address.
    pub fn journal_ref<'a>(
        &'a self,
        remote: &str,
        dir: &Utf8Path,
        id: &'a LoopId,
    ) -> Result<JournalRef<'a>, GitError> {
        let upstream = self.state_remote(remote, dir)?;
        let limits = (LOOKING, BRINGING);
        Ok(JournalRef { repository: self, upstream, name: name_of(id), id, limits })
    }

    /// The loops at a remote, each with the commit of its reference, and the address of the remote. Nothing is fetched.
    pub fn loops_at(
        &self,
        remote: &str,
        dir: &Utf8Path,
        limit: Duration,
    ) -> Result<(String, Result<LoopHeads, Refusal>), GitError> {
        let upstream = self.state_remote(remote, dir)?;
        let destination = Destination { runs_hooks: false, ..self.destination(&upstream)? };
        let asked = ["ls-remote", "--refs", "--", &destination.name, "refs/refrain/*/journal"];
        let listed = match self.talk((&upstream, &destination), &asked, limit, None)? {
            Ok(done) if done.status.success() => {
                let printed = String::from_utf8_lossy(&done.stdout).into_owned();
                let names = printed.lines().filter_map(|line| line.split_once('\t'));
                // A pattern matches more than one folder.
                let found = |(commit, name): (&str, &str)| {
                    let id = name.strip_prefix(REFS)?.strip_suffix(JOURNAL)?.parse().ok()?;
                    Some((id, commit.parse().ok()?))
                };
                Ok(names.filter_map(found).collect())
            }
            Ok(done) => Err(of_transport(said(&done))),
            Err(refusal) => Err(refusal),
        };
        Ok((upstream.url, listed))
    }

    fn state_remote(&self, remote: &str, dir: &Utf8Path) -> Result<Upstream, GitError> {
        let named = configured(self, self.git(), |it| it.push_url(remote))?;
        let path = dir.join(remote);
        let (remote, url) = match named {
            Some(url) => (remote.to_owned(), without_password(&url)),
            None if path.is_dir() => (String::new(), path.canonicalize_utf8().unwrap_or(path).into_string()),
            None => (String::new(), remote.to_owned()),
        };
        Ok(Upstream { remote, branch: String::new(), url })
    }

    /// Gives the files of this worktree, which are those of its head, the content of a tree. The difference is not
    /// staged.
    pub fn take_content(&self, tree: &Oid) -> Result<(), GitError> {
        self.git().output(["read-tree", "-m", "-u", "HEAD", tree.as_str()], &[])?;
        self.git().output(["reset", "--quiet", "--no-recurse-submodules"], &[]).map(drop)
    }
}

impl JournalRef<'_> {
    /// The same, with these time limits for a look at the remote and for a fetch.
    #[must_use]
    pub fn within(self, looking: Duration, bringing: Duration) -> Self {
        Self { limits: (looking, bringing), ..self }
    }

    pub fn id(&self) -> &LoopId {
        self.id
    }

    /// The name of the remote; empty if it was given by its address.
    pub fn remote(&self) -> &str {
        &self.upstream.remote
    }

    /// The address of the remote, without a password.
    pub fn url(&self) -> &str {
        &self.upstream.url
    }

    /// The reference as it is now, with everything that it holds; none if it does not exist.
    pub fn fetch(&self) -> Result<Result<Option<JournalCommit>, Refusal>, GitError> {
        let destination = self.destination()?;
        let asked = ["ls-remote", "--refs", "--", &destination.name, &self.name];
        let commit = match self.talk(&destination, &asked, self.limits.0)? {
            Err(refusal) => return Ok(Err(refusal)),
            Ok(done) => {
                let printed = String::from_utf8_lossy(&done.stdout).into_owned();
                let mut lines = printed.lines().filter_map(|line| line.split_once('\t'));
                lines.find(|(_, name)| *name == self.name).and_then(|(at, _)| at.parse::<Oid>().ok())
            }
        };
        let Some(commit) = commit else { return Ok(Ok(None)) };
        Ok(self.fetch_commit(commit)?.map(Some))
    }

    /// The commit at which the reference was just seen, with everything that it holds.
    pub fn fetch_commit(&self, commit: Oid) -> Result<Result<JournalCommit, Refusal>, GitError> {
        if !self.repository.has(&commit)? {
            let destination = self.destination()?;
            let asked =
                ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--"];
            let asked: Vec<&str> = asked.into_iter().chain([destination.name.as_str(), &self.name]).collect();
            if let Err(refusal) = self.talk(&destination, &asked, self.limits.1)? {
                return Ok(Err(refusal));
            }
        }
        self.read(commit).map(Ok)
    }

    /// Moves the reference to a commit if it is at `expected`, or does not exist if that is none.
    pub fn swap(&self, commit: &Oid, expected: Option<&Oid>) -> Result<Swap, GitError> {
        let lease = format!("--force-with-lease={}:{}", self.name, expected.map_or("", Oid::as_str));
        let refspec = format!("{commit}:{}", self.name);
        let destination = self.destination()?;
        let words = ["push", "--porcelain", "--no-progress", "--no-verify", "--no-follow-tags", &lease];
        let words = words.into_iter().chain(["--recurse-submodules=no", "--", &destination.name, &refspec]);
        let done = match self.repository.talk(
            (&self.upstream, &destination),
            &words.collect::<Vec<_>>(),
            BRINGING,
            None,
        )? {
            Ok(done) => done,
            Err(refusal) => return Ok(Swap::Unknown(refusal)),
        };
        // Only a line about the reference says for sure that it was not moved.
        let is_told = String::from_utf8_lossy(&done.stdout).lines().any(|line| line.starts_with("!\t"));
        Ok(match of_push(&done, &self.name) {
            PushResult::Pushed => Swap::Done,
            PushResult::Rejected { .. } => Swap::Stale,
            PushResult::Refused(refusal @ (Refusal::NoRemote { .. } | Refusal::NoPermission { .. })) => {
                Swap::Refused(refusal)
            }
            PushResult::Refused(refusal @ Refusal::Unreachable { .. }) => Swap::Unknown(refusal),
            PushResult::Refused(refusal) if is_told => Swap::Refused(refusal),
            PushResult::Refused(refusal) => Swap::Unknown(refusal),
        })
    }

    /// Removes the reference if it is at `expected`, and with it all others of the loop, whose texts its journal has.
    pub fn remove(&self, expected: &Oid) -> Result<Swap, GitError> {
        let destination = self.destination()?;
        let all = format!("{REFS}{}/*", self.id);
        let listed = match self.talk(
            &destination,
            &["ls-remote", "--refs", "--", &destination.name, &all],
            self.limits.0,
        )? {
            Ok(done) => String::from_utf8_lossy(&done.stdout).into_owned(),
            Err(refusal) => return Ok(Swap::Refused(refusal)),
        };
        let found: Vec<_> = listed.lines().filter_map(|line| line.split_once('\t')).collect();
        if !found.contains(&(expected.as_str(), self.name.as_str())) {
            return Ok(Swap::Stale);
        }
        let leases: Vec<_> =
            found.iter().map(|(at, name)| format!("--force-with-lease={name}:{at}")).collect();
        let refspecs: Vec<_> = found.iter().map(|(_, name)| format!(":{name}")).collect();
        let words = ["push", "--porcelain", "--no-progress", "--no-verify", "--atomic"];
        let words = words.into_iter().chain(leases.iter().map(String::as_str));
        let words = words.chain(["--recurse-submodules=no", "--", &destination.name]);
        let words: Vec<_> = words.chain(refspecs.iter().map(String::as_str)).collect();
        let talked = self.repository.talk((&self.upstream, &destination), &words, BRINGING, None)?;
        Ok(match talked.map(|done| of_push(&done, &self.name)) {
            Ok(PushResult::Pushed) => Swap::Done,
            Ok(PushResult::Rejected { .. }) => Swap::Stale,
            Ok(PushResult::Refused(refusal)) => Swap::Refused(refusal),
            Err(refusal) => Swap::Unknown(refusal),
        })
    }

    /// A suspected secret in the commits of the loop that the remote lacks, as text.
    pub fn exposed(
        &self,
        head: &Oid,
        base: Option<&Oid>,
        (largest, allow_secrets): (u64, &[PathGlob]),
    ) -> Result<Option<String>, GitError> {
        let new = [head.to_string()].into_iter().chain(base.map(|base| format!("^{base}"))).collect();
        self.repository.exposed_at(&self.upstream, new, Rules { largest, allow_secrets, base }, None)
    }

    /// Stores a content as an object.
    pub fn store(&self, content: &[u8]) -> Result<Oid, GitError> {
        let git = self.repository.git();
        oid("hash-object", &git.text(["hash-object", "-w", "--stdin", "--no-filters"], content)?)
    }

    /// The content of an object of at most 64 MiB.
    pub fn content(&self, object: &Oid) -> Result<Vec<u8>, GitError> {
        self.repository.git().output(["cat-file", "blob", object.as_str()], &[])
    }

    /// Makes the commit with which a loop leaves.
    pub fn commit(&self, new: &NewJournalCommit<'_>) -> Result<Oid, GitError> {
        let git = self.repository.git().with_index(new.index);
        git.output(["read-tree", "--empty"], &[])?;
        let line = |(path, object): &(Utf8PathBuf, Oid)| {
            stage::info("100644", object, format!("{FILES}{path}").as_bytes())
        };
        stage::put(git, &new.files.iter().flat_map(line).collect::<Vec<_>>())?;
        for (number, tree) in new.trees.iter().enumerate() {
            git.output(["read-tree", &format!("--prefix=tree-{number}/"), tree.as_str()], &[])?;
        }
        let tree = oid("write-tree", &git.text(["write-tree"], &[])?)?;
        let parents: Vec<&Oid> = new.previous.into_iter().chain([new.head]).collect();
        self.make(&tree, &parents, (new.fence, new.seq, None))
    }

    /// Makes the commit with which a machine claims what this one has.
    pub fn claim(&self, of: &JournalCommit, fence: u64, seq: u64, holder: &str) -> Result<Oid, GitError> {
        let tree = self.repository.tree_of(&of.found.commit)?;
        self.make(&tree, &[&of.found.commit], (fence, seq, Some(holder)))
    }

    fn make(
        &self,
        tree: &Oid,
        parents: &[&Oid],
        (fence, seq, holder): (u64, u64, Option<&str>),
    ) -> Result<Oid, GitError> {
        let id = self.id;
        let mut message = format!("Journal of loop {id}\n\n{LOOP}: {id}\n{FENCE}: {fence}\n{SEQ}: {seq}\n");
        // Two machines of one name that claim it in the same second would make the same commit, and both succeed.
        let claim = |holder| format!("{HOLDER}: {holder}\n{CLAIM}: {:016x}{:016x}\n", random(), random());
        message.extend(holder.map(claim));
        let parents = parents.iter().flat_map(|parent| ["-p", parent.as_str()]);
        let words = OWN_IDENTITY.iter().copied().chain(["commit-tree", tree.as_str()]).chain(parents);
        let made = Git::text(self.repository.git(), words.chain(["-F", "-"]), message.as_bytes())?;
        oid("commit-tree", &made)
    }

    fn read(&self, commit: Oid) -> Result<JournalCommit, GitError> {
        let git = self.repository.git();
        let value = |key| format!("%(trailers:key={key},valueonly,separator=%x2C)");
        let format = format!("--format={}", [LOOP, FENCE, HOLDER].map(value).join("%n"));
        let printed = git.text(["show", "--no-patch", &format, commit.as_str(), "--"], &[])?;
        let mut lines = printed.split('\n');
        let unreadable = |answer: &str| GitError::Answer { command: "show", answer: answer.to_owned() };
        let (Some(id), Some(fence), holder) = (lines.next(), lines.next(), lines.next().unwrap_or_default())
        else {
            return Err(unreadable(&printed));
        };
        // No loop moves so often that its fence needs more bits.
        let (true, Ok(fence)) = (id == self.id.as_str(), fence.parse::<u32>()) else {
            return Err(unreadable(&printed));
        };
        let fence = u64::from(fence);
        let holder = Some(holder.to_owned()).filter(|holder| !holder.is_empty());
        let listed =
            git.output(["ls-tree", "-r", "-z", "--long", "--full-tree", commit.as_str(), FILES], &[])?;
        let lines = listed.split(|byte| *byte == 0).filter(|line| !line.is_empty());
        let files = lines.map(|line| entry(line).ok_or_else(|| unreadable(&String::from_utf8_lossy(line))));
        let files = files.collect::<Result<_, _>>()?;
        Ok(JournalCommit { found: RemoteLoop { commit, fence, holder }, files })
    }

    fn destination(&self) -> Result<Destination, GitError> {
        Ok(Destination { runs_hooks: false, ..self.repository.destination(&self.upstream)? })
    }

    fn talk(
        &self,
        destination: &Destination,
        args: &[&str],
        limit: Duration,
    ) -> Result<Result<ToolOutput, Refusal>, GitError> {
        Ok(match self.repository.talk((&self.upstream, destination), args, limit, None)? {
            Ok(done) if !done.status.success() => Err(of_transport(said(&done))),
            answered => answered,
        })
    }
}

/// A file in the listing of a commit. None if it is no regular file, or has a path that no loop has.
fn entry(line: &[u8]) -> Option<(Utf8PathBuf, Oid, u64)> {
    let (entry, path) = std::str::from_utf8(line).ok()?.split_once('\t')?;
    let path = Utf8Path::new(path.strip_prefix(FILES)?);
    let is_plain = |part: Utf8Component<'_>| matches!(part, Utf8Component::Normal(name) if name != ".git");
    let mut words = entry.split_whitespace();
    let ("100644", "blob", Some(object), Some(size)) =
        (words.next()?, words.next()?, words.next(), words.next())
    else {
        return None;
    };
    let entry = || Some((path.to_owned(), object.parse().ok()?, size.parse().ok()?));
    (path.components().all(is_plain) && !path.as_str().contains(char::is_control)).then(entry)?
}
