//! Commits by the agent itself are scanned like those of the loop. They are already in the history and only reported:
//! Refrain never rewrites a history that others may have.

use std::collections::{HashMap, HashSet};

use refrain_core::git::{ExposedSecret, Oid, RepoPath};

use crate::candidate::status::Blob;
use crate::candidate::{Rules, next_object, screen, what};
use crate::error::GitError;
use crate::plumbing::git::Git;
use refrain_secrets as secrets;

/// How much file content is held at once, in bytes.
const AT_ONCE: u64 = 16 << 20;

struct ChangedFile {
    commit: Oid,
    path: Vec<u8>,
    new: Oid,
    /// The version in the commit's first parent.
    old: Option<Blob>,
}

impl ChangedFile {
    fn exposed(&self, what: String, line: Option<u32>, rules: Rules<'_>) -> ExposedSecret {
        let path = RepoPath::from_bytes(&self.path);
        ExposedSecret { commit: self.commit.clone(), path, what, line, allowed: rules.allow(&self.path) }
    }
}

/// Suspected secrets in the changes of these commits, in their order. Files over the size limit are not scanned (see
/// [`unscreened`]), nor are files that a merge took unchanged from one side.
pub(crate) fn screen_commits(
    git: Git<'_>,
    commits: &[Oid],
    rules: Rules<'_>,
) -> Result<Vec<ExposedSecret>, GitError> {
    let mut brought = brought(git, commits)?;
    // The same content at the same path in two commits is one finding.
    let mut seen = HashSet::new();
    brought.retain(|it| seen.insert((it.path.clone(), it.new.clone())));
    if brought.is_empty() {
        return Ok(Vec::new());
    }
    let sizes = sizes(git, &brought)?;
    let small = |it: &ChangedFile| sizes.get(&it.new).copied().filter(|size| *size <= rules.largest);
    let mut exposed: Vec<ExposedSecret> = Vec::new();
    let (mut chunk, mut bytes) = (Vec::new(), 0);
    for it in brought {
        let Some(size) = small(&it) else {
            // If the content is not scanned, the name still is.
            let by_name = secrets::screen_name(&it.path).filter(|_| it.old.is_none());
            exposed.extend(by_name.map(|what| it.exposed(what.to_owned(), None, rules)));
            continue;
        };
        if bytes + size > AT_ONCE {
            screen_chunk(git, &std::mem::take(&mut chunk), rules, &mut exposed)?;
            bytes = 0;
        }
        bytes += size;
        chunk.push(it);
    }
    screen_chunk(git, &chunk, rules, &mut exposed)?;
    Ok(exposed)
}

fn lines<'a>(names: impl Iterator<Item = &'a Oid>) -> String {
    names.map(|name| format!("{name}\n")).collect()
}

/// Reads `commit NUL`, and for each of its files `:mode mode object object X NUL path NUL`; of a merge there are as
/// many colons, and as many modes and objects before the last, as it has parents.
fn parse(printed: &[u8]) -> Vec<ChangedFile> {
    let text = |bytes: &[u8]| str::from_utf8(bytes).unwrap_or_default().to_owned();
    let mut fields = printed.split(|byte| *byte == 0);
    let (mut commit, mut brought) = (None, Vec::new());
    while let Some(field) = fields.next() {
        let parents = field.iter().take_while(|byte| **byte == b':').count();
        if parents == 0 {
            commit = text(field).parse::<Oid>().ok().or(commit);
            continue;
        }
        let (words, path) = (text(&field[parents..]), fields.next().unwrap_or_default());
        let words: Vec<&str> = words.split(' ').collect();
        let (Some(new), Some(commit)) = (words.get(2 * parents + 1), commit.as_ref()) else { continue };
        let is_nothing = |name: &str| name.bytes().all(|digit| digit == b'0');
        let Some(new) = new.parse().ok().filter(|_| !is_nothing(new)) else { continue };
        let old = words.get(parents + 1).filter(|old| !is_nothing(old)).and_then(|old| old.parse().ok());
        let old = old.map(|object| Blob { mode: words[0].to_owned(), object });
        brought.push(ChangedFile { commit: commit.clone(), path: path.to_vec(), new, old });
    }
    brought
}

fn sizes(git: Git<'_>, brought: &[ChangedFile]) -> Result<HashMap<Oid, u64>, GitError> {
    let input = lines(brought.iter().map(|it| &it.new));
    let asked = ["cat-file", "--buffer", "--batch-check=%(objectname) %(objectsize)"];
    let printed = Git::output(git, asked, input.as_bytes())?;
    let printed = String::from_utf8_lossy(&printed);
    let sizes = printed.lines().filter_map(|line| {
        let (name, size) = line.split_once(' ')?;
        Some((name.parse().ok()?, size.parse().ok()?))
    });
    Ok(sizes.collect())
}

fn screen_chunk(
    git: Git<'_>,
    chunk: &[ChangedFile],
    rules: Rules<'_>,
    exposed: &mut Vec<ExposedSecret>,
) -> Result<(), GitError> {
    if chunk.is_empty() {
        return Ok(());
    }
    let input = lines(chunk.iter().map(|it| &it.new));
    let printed = Git::output(git, ["cat-file", "--buffer", "--batch"], input.as_bytes())?;
    let mut rest = printed.as_slice();
    for it in chunk {
        // `<name> blob <size>`, the bytes, and a line break.
        let Some(content) = next_object(&mut rest) else { break };
        if let Some(found) = screen(git, &it.path, content, it.old.as_ref(), rules)? {
            exposed.push(it.exposed(what(found), found.line, rules));
        }
    }
    Ok(())
}

/// The first file in these commits that is too large to be scanned, as text; none if secrets are allowed there.
pub(crate) fn unscreened(
    git: Git<'_>,
    commits: &[Oid],
    rules: Rules<'_>,
) -> Result<Option<String>, GitError> {
    let brought = brought(git, commits)?;
    let sizes = sizes(git, &brought)?;
    let is_large = |it: &&ChangedFile| sizes.get(&it.new).is_some_and(|size| *size > rules.largest);
    let large = brought.iter().find(|it| is_large(it) && !rules.allow(&it.path));
    Ok(large.map(|it| {
        let (path, commit) = (RepoPath::from_bytes(&it.path), it.commit.short());
        format!(
            "{path} of commit {commit}: it has more than {} bytes, so it was not screened for secrets (largest-file and \
             allow-secrets under [git] change that)",
            rules.largest
        )
    }))
}

fn brought(git: Git<'_>, commits: &[Oid]) -> Result<Vec<ChangedFile>, GitError> {
    if commits.is_empty() {
        return Ok(Vec::new());
    }
    let list = ["diff-tree", "--stdin", "-r", "-c", "-z", "--raw", "--root", "--no-renames"];
    Ok(parse(&Git::output(git, list, lines(commits.iter()).as_bytes())?))
}

/// The parts of a commit that its author can choose: all except the names of its tree and parents, before the
/// message.
fn header(object: &[u8]) -> Vec<u8> {
    let is_name = |line: &[u8]| {
        let name = [b"tree ".as_slice(), b"parent "].iter().find_map(|field| line.strip_prefix(*field));
        name.and_then(|name| str::from_utf8(name).ok())
            .is_some_and(|name| name.trim_end().parse::<Oid>().is_ok())
    };
    object.split_inclusive(|byte| *byte == b'\n').filter(|line| !is_name(line)).flatten().copied().collect()
}

/// The first commit whose message, author or other header contains a suspected secret, as text.
pub(crate) fn screen_messages(git: Git<'_>, commits: &[Oid]) -> Result<Option<String>, GitError> {
    for commits in commits.chunks(1000) {
        let printed =
            Git::output(git, ["cat-file", "--buffer", "--batch"], lines(commits.iter()).as_bytes())?;
        let mut rest = printed.as_slice();
        for commit in commits {
            let Some(object) = next_object(&mut rest) else { break };
            let end = memchr::memmem::find(object, b"\n\n").unwrap_or(object.len());
            let (fields, message) = object.split_at(end);
            for (part, text) in [("message", message), ("header", &header(fields))] {
                if let Some(what) = secrets::screen_name(text) {
                    return Ok(Some(format!(
                        "the {part} of commit {}: it looks like {what}",
                        commit.short()
                    )));
                }
            }
        }
    }
    Ok(None)
}
