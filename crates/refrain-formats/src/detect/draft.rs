//! An offer under construction: every ecosystem adds its gates, then they get names and duplicates are dropped.

use std::collections::BTreeSet;

use refrain_core::gate::{Check, GateName, GateSpec, Offer};
use refrain_core::git::RepoPath;
use refrain_core::protect::Part;

use super::listing::{Listing, contains, join, split};
use super::script;

/// How many scripts are followed: a gate that has more of them is a project of its own.
const MOST_SCRIPTS: usize = 100;

struct Script {
    folder: String,
    name: String,
    command: String,
    hard: bool,
}

pub(super) struct Draft<'a> {
    pub(super) listing: &'a Listing,
    found: Vec<Script>,
    protect: BTreeSet<String>,
    protect_existing: BTreeSet<String>,
    parts: Vec<Part>,
    modules: BTreeSet<String>,
    /// The scripts of gates: the folder that they run in, the script's path, and the text of one that is not a file.
    scripts: Vec<(String, String, Option<String>)>,
    notes: Vec<String>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(listing: &'a Listing) -> Self {
        Self {
            listing,
            found: Vec::new(),
            protect: BTreeSet::new(),
            protect_existing: BTreeSet::new(),
            parts: Vec::new(),
            modules: BTreeSet::new(),
            scripts: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub(super) fn test(&mut self, folder: &str, name: &str, command: impl Into<String>) {
        self.gate(folder, name, command.into(), true);
    }

    pub(super) fn lint(&mut self, folder: &str, name: &str, command: impl Into<String>) {
        self.gate(folder, name, command.into(), false);
    }

    fn gate(&mut self, folder: &str, name: &str, command: String, hard: bool) {
        let is_there = |found: &Script| found.folder == folder && bare(&found.command) == bare(&command);
        if !self.found.iter().any(is_there) {
            self.found.push(Script { folder: folder.to_owned(), name: name.to_owned(), command, hard });
        }
    }

    /// Whether a hard gate covers the folder: one of its own, or of a folder above.
    pub(super) fn is_covered(&self, folder: &str) -> bool {
        self.found.iter().any(|found| found.hard && contains(&found.folder, folder))
    }

    /// Whether a gate of the folder runs just this.
    pub(super) fn runs(&self, folder: &str, command: &str) -> bool {
        self.found.iter().any(|found| found.folder == folder && bare(&found.command) == bare(command))
    }

    pub(super) fn protect(&mut self, globs: &[&str]) {
        self.protect.extend(globs.iter().map(|glob| (*glob).to_owned()));
    }

    pub(super) fn protect_file(&mut self, path: &str) {
        self.protect.insert(format!("/{}", globset::escape(path)));
    }

    /// Keys of a folder's manifest that decide: those that stay as they are, and those of lists that may gain entries.
    pub(super) fn protect_part(&mut self, folder: &str, name: &str, frozen: &[&str], may_gain: &[&str]) {
        let keys = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
        let path = RepoPath::from_bytes(join(folder, name).as_bytes());
        self.parts.push(Part { path, frozen: keys(frozen), may_gain: keys(may_gain) });
    }

    pub(super) fn protect_existing(&mut self, globs: &[&str]) {
        self.protect_existing.extend(globs.iter().map(|glob| (*glob).to_owned()));
    }

    /// A folder that a Python test runner imports from before it does from its own.
    pub(super) fn protect_modules(&mut self, folder: String) {
        self.modules.insert(folder);
    }

    /// The file that a gate's command names if the name says that it checks (`node test.js`), and what it reads and
    /// runs as a shell does. Other files on it may be the work itself.
    pub(super) fn protect_called(&mut self, folder: &str, command: &str) {
        let words = command.split(|c: char| c.is_whitespace() || ";&|()\"'".contains(c));
        for word in words.map(|word| word.trim_start_matches("./")).filter(|word| script::checks(word)) {
            if self.listing.has(folder, word) {
                self.protect_existing_file(&join(folder, word));
            }
        }
        self.scripts.push((folder.to_owned(), join(folder, ""), Some(command.to_owned())));
    }

    /// The script that a gate runs in `folder`: what it reads and runs decides with it.
    pub(super) fn protect_called_by(&mut self, folder: &str, script: &str) {
        self.scripts.push((folder.to_owned(), join(folder, script), None));
    }

    fn protect_existing_file(&mut self, path: &str) {
        self.protect_existing.insert(format!("/{}", globset::escape(path)));
    }

    /// Protects what scripts read and run, and returns those whose texts are not known.
    fn follow_scripts(&mut self) -> Vec<String> {
        let (mut seen, mut unread, mut calls) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
        let mut queue = std::mem::take(&mut self.scripts);
        let mut texts: Vec<String> = Vec::new();
        while let Some((folder, script, text)) = queue.pop() {
            let text = match (text, self.listing.text("", &script)) {
                (Some(text), _) => text,
                (None, _) if seen.len() >= MOST_SCRIPTS || !seen.insert(script.clone()) => continue,
                (None, Some(text)) => text.to_owned(),
                (None, None) => {
                    unread.insert(script);
                    continue;
                }
            };
            for called in script::called(&text) {
                let places = script::places(&called, &folder, &script);
                let there: Vec<_> =
                    places.iter().filter(|path| self.listing.has("", path)).cloned().collect();
                queue.extend(there.iter().map(|path| (folder.clone(), path.clone(), None)));
                calls.extend(there.into_iter().map(|path| (called.clone(), path)));
                // A file that is not there may become settings of the gate: `.env`.
                let is_hidden =
                    |path: &&String| split(path).1.starts_with('.') && !self.listing.has("", path);
                let settings: Vec<_> =
                    places.iter().filter(is_hidden).filter(|_| called.is_sourced).collect();
                settings.into_iter().for_each(|path| self.protect_file(path));
            }
            texts.push(text);
        }
        let callers: Vec<&str> = texts.iter().map(String::as_str).collect();
        for (called, path) in calls {
            if script::decides(&called, &path, self.listing.text("", &path), &callers) {
                self.protect_existing_file(&path);
            }
        }
        unread.into_iter().collect()
    }

    pub(super) fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    pub(super) fn finish(mut self) -> Offer {
        let unread = self.follow_scripts();
        // Stable: within each, the order is that of detection.
        self.found.sort_by_key(|found| (!found.hard, !found.folder.is_empty()));
        let mut names: Vec<GateName> = Vec::new();
        let mut gates = Vec::new();
        for found in self.found {
            let label =
                format!("{}-{}", found.name, found.folder.replace(|c: char| !c.is_ascii_alphanumeric(), "-"));
            let name = GateName::of_command(&label).apart_from(&names);
            names.push(name.clone());
            gates.push(GateSpec {
                name,
                check: Check::Command(in_folder(&found.folder, found.command)),
                hard: found.hard,
                timeout: GateSpec::TIMEOUT,
                retries: 0,
                when: Default::default(),
                completes: false,
                own_tests: false,
                by_default: false,
            });
        }
        Offer {
            gates,
            protect: self.protect.into_iter().collect(),
            protect_existing: self.protect_existing.into_iter().collect(),
            parts: self.parts,
            modules: self.modules.into_iter().collect(),
            unread,
            notes: self.notes,
        }
    }
}

/// The command, run in a folder. With the dot, neither `CDPATH` nor a name like `-` leads elsewhere.
fn in_folder(folder: &str, command: String) -> String {
    // Only a NUL cannot be quoted, and no path has one.
    match shlex::try_quote(&format!("./{folder}")) {
        Ok(quoted) if !folder.is_empty() => format!("cd {quoted} && {command}"),
        Ok(_) | Err(_) => command,
    }
}

/// A command without what does not make it another one.
fn bare(command: &str) -> &str {
    let command = command.strip_prefix("CI=true ").unwrap_or(command);
    ["sh ./", "bash ./", "sh ", "bash ", "./"]
        .iter()
        .find_map(|start| command.strip_prefix(start))
        .unwrap_or(command)
}
