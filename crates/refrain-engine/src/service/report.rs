//! The result of a loop, gathered from its journal, its logs and its repository; and whether these still agree. Nothing
//! is written, and only git is asked.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use refrain_core::event::Seal;
use refrain_core::git::Oid;
use refrain_core::protect::LocalCommit;
use refrain_core::text::printable;
use refrain_core::view::report::{
    self, Check, Files, JournalMark, KeptFile, Report, ReportFacts, ReportFile, SealedFile, Subject, Trail,
    Verdict,
};
use refrain_core::{LoopId, LoopState, Record, gate};
use refrain_git::{GitError, Repository};
use refrain_proc::output;
use refrain_store::JournalError;
use refrain_store::journal::{self, Whole};

use crate::driver::liveness::last_error;
use crate::service::logs::whole_logs;
use crate::service::redact::Redactor;
use crate::service::{LoopLocation, Service, seal};
use crate::{EngineError, chain};

/// How much of the end of a gate's log a report holds, in bytes.
const END: u64 = 2 << 10;

impl Service {
    pub(crate) fn loop_report(&self, id: &LoopId) -> Result<Report, EngineError> {
        let case = Case::open(self, id)?;
        let all = case.whole.records.len();
        let state = &case.whole.state;
        let runner = self.alive(&case.found.dir, state).runner;
        let runner_error = last_error(&case.found.dir, state.updated_at);
        Ok(case.report(all, &self.host().version, (runner, runner_error)))
    }

    /// Checks every byte of a loop's journal, whether what it says of logs, trees and commits is so, and whether a
    /// report that is given says the same.
    /// Errors: [`EngineError`] if there is no such loop or its journal cannot be read; one that is damaged is a
    /// verdict.
    pub(crate) fn verify_loop(
        &self,
        id: &LoopId,
        given: Option<&ReportFile>,
    ) -> Result<Verdict, EngineError> {
        let case = match Case::open(self, id) {
            Err(EngineError::Journal(error @ JournalError::Damaged { line, .. })) => {
                return Ok(Verdict::damaged(id.clone(), line.saturating_sub(1), error.to_string()));
            }
            case => case?,
        };
        let mut checks = case.check_files();
        checks.extend(case.check_repository());
        checks.extend(given.into_iter().flat_map(|given| case.check_report(given)));
        let verdict = Verdict::new(id.clone(), case.whole.records.len() as u64, case.whole.torn, checks);
        Ok(verdict.with_signatures(&case.whole.state.signatures))
    }
}

/// A loop, and what is known of it for a report.
struct Case {
    found: LoopLocation,
    whole: Whole,
    repository: Result<Repository, GitError>,
    /// A git remote has the loop.
    is_copy: bool,
}

impl Case {
    fn open(service: &Service, id: &LoopId) -> Result<Self, EngineError> {
        let found = service.locate(id)?;
        let whole = journal::whole(&found.dir, &service.host().signing())?;
        // The loop's own worktree may be gone; its work is in the shared repository.
        let spec = &whole.state.spec;
        let repository = Repository::open(&service.project().root, &service.host().env)
            .map(|repository| service.pinned(repository, spec));
        Ok(Self { found, whole, repository, is_copy: service.copy.is_some() })
    }

    /// The report as it is, or was, when the journal had this number of records.
    fn report(
        &self,
        records: usize,
        version: &str,
        (runner, runner_error): (Option<bool>, Option<String>),
    ) -> Report {
        // All of them are folded already, and their signatures checked.
        let before = fold(&self.whole.records[..records]).filter(|_| records < self.whole.records.len());
        let state = before.as_ref().unwrap_or(&self.whole.state);
        let trail = Trail::of(&self.whole.records[..records]);
        let redactor = Redactor::new(&state.spec, []);
        let base = state.git.base.as_ref();
        let began = state.git.began.as_ref();
        let base_tree = began.and_then(|began| self.tree_of(began));
        let files = base.and_then(|_| {
            // Without a known start it is unknown what is new; without a first commit, all is.
            let from = if began.is_some() { Some(base_tree.as_ref()?) } else { None };
            self.files(from, report::tree(state, &trail)?)
        });
        let found = ReportFacts {
            refrain: version.to_owned(),
            journal: JournalMark {
                records: records as u64,
                hash: self.whole.hashes.get(records.saturating_sub(1)).cloned().unwrap_or_default(),
            },
            runner,
            runner_error,
            evidence: trail.files.iter().map(|file| self.sealed(file)).collect(),
            gate_logs: self.gate_logs(state),
            base_tree,
            files,
        };
        report::make(state, trail, found).cleaned(&|text| redactor.clean(text))
    }

    fn tree_of(&self, commit: &Oid) -> Option<Oid> {
        Some(self.repository.as_ref().ok()?.recorded(commit).ok()??.tree)
    }

    fn files(&self, from: Option<&Oid>, to: &Oid) -> Option<Files> {
        let mut changed = self.repository.as_ref().ok()?.changed_files(from, to).ok()?;
        let more = changed.len().saturating_sub(Files::NAMED) as u64;
        changed.truncate(Files::NAMED);
        Some(Files { from: from.cloned(), to: to.clone(), changed, more })
    }

    /// The log of each gate's last result, and the last lines of it.
    fn gate_logs(&self, state: &LoopState) -> BTreeMap<usize, (String, Option<String>)> {
        let of = |result: &refrain_core::r#loop::GateResult| {
            let name = result.spec(&state.spec)?.name.clone();
            let path = self.found.dir.attempt(result.of).gate(&name, result.run);
            // Of an agent's stream only the final message is for people.
            let said = match result.spec(&state.spec)?.check {
                gate::Check::Review(_) => path.with_extension("final.md"),
                gate::Check::Command(_) => path.clone(),
            };
            let end = output::read_end(&said, END + 1).ok().map(|end| last_lines(&end));
            Some((result.gate, (self.inside(&path), end)))
        };
        state.gate_results().filter_map(of).collect()
    }

    fn sealed(&self, file: &KeptFile) -> SealedFile {
        SealedFile { path: self.inside(&seal::path(&self.found.dir, file)), seal: file.seal.clone() }
    }

    fn inside(&self, path: &Utf8PathBuf) -> String {
        path.strip_prefix(&self.found.dir.0).unwrap_or(path).to_string()
    }

    fn check_files(&self) -> Vec<Check> {
        let trail = Trail::of(&self.whole.records);
        let is_excused = |file| self.is_copy || trail.is_from_elsewhere(file);
        trail.files.iter().map(|file| self.check_file(file, is_excused(file))).collect()
    }

    /// Of a file that was written on another machine, an excerpt may be all that is here.
    fn check_file(&self, file: &KeptFile, may_be_excerpt: bool) -> Check {
        let path = seal::path(&self.found.dir, file);
        let which = self.inside(&path);
        // One that says nothing was never made.
        let is_gone = file.seal.bytes > 0 && !path.exists() && output::read(&path).is_err();
        match seal::of(&path) {
            _ if is_gone && self.found.archived => {
                Check::unchecked(Subject::File, which, "it was deleted from the archive")
            }
            _ if is_gone => Check::differs(Subject::File, which, "it is not there any more"),
            Ok(seal) if seal == file.seal => Check::agrees(Subject::File, which),
            Ok(_) if may_be_excerpt && whole_logs::is_excerpt(&path) => {
                let why =
                    format!("only its begin and end are here, and the machine {} has all of it", file.host);
                Check::unchecked(Subject::File, which, printable(&why))
            }
            Ok(seal) => Check::differs(Subject::File, which, another(&file.seal, &seal)),
            Err(error) => Check::unchecked(Subject::File, which, format!("it cannot be read: {error}")),
        }
    }

    fn check_repository(&self) -> Vec<Check> {
        let git = &self.whole.state.git;
        if git.base.is_none() {
            return Vec::new();
        }
        let trail = Trail::of(&self.whole.records);
        let proven = self.whole.state.proven_tree();
        let mut checks = Vec::new();
        let repository = match &self.repository {
            Ok(repository) => repository,
            Err(error) => {
                let which = proven.map_or_else(|| "the repository".to_owned(), ToString::to_string);
                return vec![Check::unchecked(Subject::Tree, which, chain(error))];
            }
        };
        if let Some(head) = &git.began {
            checks.push(match repository.recorded(head) {
                Ok(Some(_)) => Check::agrees(Subject::Base, head),
                Ok(None) => Check::unchecked(Subject::Base, head, "it is not in the repository any more"),
                Err(error) => Check::unchecked(Subject::Base, head, chain(&error)),
            });
        }
        checks.extend(proven.map(|tree| {
            let is_committed = trail.commits.iter().any(|(_, of, _)| of.as_ref() == Some(tree));
            // Of a tree that is not whole there is nothing to compare.
            let verified = repository.has_whole(tree).and_then(|whole| match whole {
                true => repository.verify_tree(tree, None).map(|()| true),
                false => Ok(false),
            });
            match verified {
                Ok(true) => Check::agrees(Subject::Tree, tree),
                Err(error) if error.is_of_objects() => Check::differs(Subject::Tree, tree, chain(&error)),
                Ok(false) if is_committed => Check::differs(
                    Subject::Tree,
                    tree,
                    "it was committed, and is not whole in the repository any more",
                ),
                // Nothing holds on to it.
                Ok(false) => Check::unchecked(
                    Subject::Tree,
                    tree,
                    "it was never committed, and git has cleaned it up since, or a part of it",
                ),
                Err(error) => Check::unchecked(Subject::Tree, tree, chain(&error)),
            }
        }));
        let entries = proven.and_then(|tree| repository.new_entries(git.began.as_ref(), tree).ok());
        let submodules =
            entries.and_then(|entries| repository.local_commits(&entries, true).ok()).unwrap_or_default();
        checks.extend(submodules.into_iter().map(|LocalCommit { path, commit }| {
            let which = format!("its {path} at {}", commit.short());
            let why = "it is a commit of a submodule, and this clone knows no remote that has it";
            Check::unchecked(Subject::Tree, which, why)
        }));
        let commits = trail.commits.iter();
        checks.extend(
            commits.map(|(commit, tree, iteration)| self.check_commit(repository, commit, tree, *iteration)),
        );
        checks
    }

    fn check_commit(
        &self,
        repository: &Repository,
        commit: &Oid,
        tree: &Option<Oid>,
        iteration: u32,
    ) -> Check {
        let found = match repository.recorded(commit) {
            Ok(Some(found)) => found,
            Ok(None) => {
                return Check::differs(Subject::Commit, commit, "it is not in the repository any more");
            }
            Err(error) => return Check::unchecked(Subject::Commit, commit, chain(&error)),
        };
        // A commit of the agent's own has neither on record.
        let Some(tree) = tree else { return Check::agrees(Subject::Commit, commit) };
        if found.tree != *tree {
            return Check::differs(
                Subject::Commit,
                commit,
                format!("its tree is {}, not {}", found.tree, tree),
            );
        }
        let id = self.whole.state.spec.id.as_str();
        match (found.of_loop.as_str(), found.of_iteration.as_str()) {
            (of, n) if of == id && n == iteration.to_string() => Check::agrees(Subject::Commit, commit),
            ("", _) => Check::differs(Subject::Commit, commit, "its trailers do not name the loop"),
            (of, n) => {
                let why = format!("its trailers name iteration {n} of loop {of}, not {iteration} of {id}");
                Check::differs(Subject::Commit, commit, why)
            }
        }
    }

    /// The report is made once more, from as much of the journal as there was then.
    fn check_report(&self, given: &ReportFile) -> Vec<Check> {
        let which = format!("of {} records", given.journal.records);
        let records = usize::try_from(given.journal.records).unwrap_or(usize::MAX);
        let hash = records.checked_sub(1).and_then(|last| self.whole.hashes.get(last));
        if given.id != self.whole.state.spec.id || hash != Some(&given.journal.hash) {
            let why = "it was made from another journal: neither its id and length nor its hash are those of this one";
            return vec![Check::differs(Subject::Report, which, why)];
        }
        let made = self.report(records, &given.reported, (Some(!given.is_crashed), None));
        let mut unknown = Vec::new();
        if given.is_crashed {
            // The error of its runner is in no journal.
            unknown.extend(["reason", "needs"].map(str::to_owned));
        }
        for (place, gate) in made.proof.iter().flat_map(|proof| proof.gates.iter().enumerate()) {
            if gate.log.end.is_none() {
                unknown.push(format!("proof.gates.{place}.log.end"));
            }
        }
        if made.base.as_ref().is_some_and(|base| base.tree.is_none()) {
            unknown.push("base.tree".to_owned());
        }
        if made.files.is_none() {
            unknown.push("files".to_owned());
        }
        let found = match given.differences(&made, &unknown) {
            Ok(found) => found,
            Err(error) => return vec![Check::unchecked(Subject::Report, which, error)],
        };
        let mut checks = vec![match found.certain.is_empty() {
            true => Check::agrees(Subject::Report, &which),
            false => Check::differs(Subject::Report, &which, says_otherwise(&found.certain)),
        }];
        if !found.unknown.is_empty() {
            let why = "; what that was made from, or the keys that you trust, may have changed since";
            checks.push(Check::unchecked(Subject::Report, which, says_otherwise(&found.unknown) + why));
        }
        checks
    }
}

fn says_otherwise(places: &[String]) -> String {
    const NAMED: usize = 10;
    let more = places.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more places") } else { String::new() };
    format!("it says something else at {}{more}", places[..places.len().min(NAMED)].join(", "))
}

fn fold(records: &[Record]) -> Option<LoopState> {
    let (first, rest) = records.split_first()?;
    let mut state = LoopState::begin(first).ok()?;
    rest.iter().try_for_each(|record| state.apply(record)).ok()?;
    Some(state)
}

fn another(then: &Seal, now: &Seal) -> String {
    match now.bytes == then.bytes {
        true => "it is not as it was when it was sealed: as long, with another hash".to_owned(),
        false => format!("it has {} bytes, and had {} when it was sealed", now.bytes, then.bytes),
    }
}

/// The end of a log, fit to be read: from the begin of a line on, if it has more than one.
fn last_lines(end: &[u8]) -> String {
    let is_cut = end.len() as u64 > END;
    let line = end.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
    let from = line.filter(|from| is_cut && *from < end.len()).unwrap_or(0);
    let begin = if is_cut && from == 0 { "…" } else { "" };
    format!("{begin}{}", printable(&String::from_utf8_lossy(&end[from..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_log_begins_with_a_line_where_it_can() {
        assert_eq!(last_lines(b"1 failed\n"), "1 failed\n");
        assert_eq!(last_lines(b""), "");
        let long =
            |begin: &str| format!("{begin}{}\n", "x".repeat(usize::try_from(END).unwrap() - begin.len()));
        assert_eq!(last_lines(long("cut\nwhole").as_bytes()), long("cut\nwhole")[4..]);
        assert_eq!(last_lines(long("").as_bytes()), format!("…{}", long("")));
    }
}
