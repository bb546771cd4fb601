//! The files, hunks and lines of a unified diff, for surfaces that show more than its text.

mod word_diff;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiffFile {
    pub path: String,
    /// In a word: added, deleted, renamed, binary; empty if it was modified.
    pub change: &'static str,
    pub added: u64,
    pub removed: u64,
    pub lines: Vec<DiffLine>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffLine {
    pub kind: DiffKind,
    pub numbers: (Option<u64>, Option<u64>),
    pub text: String,
    /// The text in parts, each with whether it differs from the line on the other side; empty if there is none.
    pub parts: Vec<(bool, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffKind {
    Added,
    Removed,
    Same,
    Hunk,
    /// A line of git's own, or of what cut the diff.
    Note,
}

impl DiffKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "add",
            Self::Removed => "del",
            Self::Same => "same",
            Self::Hunk => "at",
            Self::Note => "note",
        }
    }
}

/// The files of the text. Text that is no diff becomes notes of a file without a path; nothing is lost.
pub fn diff_files(text: &str) -> Vec<DiffFile> {
    let mut files: Vec<DiffFile> = Vec::new();
    // The next line numbers, and how many lines of the hunk are left.
    let (mut numbers, mut left) = ((0, 0), (0, 0));
    for line in text.lines() {
        if left == (0, 0)
            && let Some(paths) = line.strip_prefix("diff --git ")
        {
            files.push(DiffFile { path: path_after(paths), ..DiffFile::default() });
            continue;
        }
        if files.is_empty() {
            files.push(DiffFile::default());
        }
        let Some(file) = files.last_mut() else { break };
        if left == (0, 0) {
            if let Some((before, after)) = hunk(line) {
                (numbers, left) = ((before.0, after.0), (before.1, after.1));
                file.push(DiffKind::Hunk, (None, None), line);
            } else {
                file.header(line);
            }
            continue;
        }
        match line.as_bytes().first() {
            Some(b'+') if left.1 > 0 => {
                file.added += 1;
                file.push(DiffKind::Added, (None, Some(numbers.1)), &line[1..]);
                (numbers.1, left.1) = (numbers.1 + 1, left.1 - 1);
            }
            Some(b'-') if left.0 > 0 => {
                file.removed += 1;
                file.push(DiffKind::Removed, (Some(numbers.0), None), &line[1..]);
                (numbers.0, left.0) = (numbers.0 + 1, left.0 - 1);
            }
            Some(b' ') | None if left.0 > 0 && left.1 > 0 => {
                file.push(
                    DiffKind::Same,
                    (Some(numbers.0), Some(numbers.1)),
                    line.get(1..).unwrap_or_default(),
                );
                numbers = (numbers.0 + 1, numbers.1 + 1);
                left = (left.0 - 1, left.1 - 1);
            }
            Some(b'\\') => file.push(DiffKind::Note, (None, None), line),
            _ => {
                // The diff was cut here.
                left = (0, 0);
                file.push(DiffKind::Note, (None, None), line);
            }
        }
    }
    files.iter_mut().for_each(|file| word_diff::mark(&mut file.lines));
    files
}

impl DiffFile {
    fn push(&mut self, kind: DiffKind, numbers: (Option<u64>, Option<u64>), text: &str) {
        self.lines.push(DiffLine { kind, numbers, text: text.to_owned(), parts: Vec::new() });
    }

    fn header(&mut self, line: &str) {
        let is_one = |prefix: &str| line.starts_with(prefix);
        if is_one("new file mode") {
            self.change = "added";
        } else if is_one("deleted file mode") {
            self.change = "deleted";
        } else if is_one("rename from ") || is_one("rename to ") {
            self.change = "renamed";
        } else if is_one("Binary files ") {
            self.change = "binary";
        } else if !["index ", "--- ", "+++ ", "similarity index "].iter().any(|prefix| is_one(prefix)) {
            self.push(DiffKind::Note, (None, None), line);
        }
    }
}

/// The second of two paths as `diff --git` names them.
fn path_after(paths: &str) -> String {
    let path = match paths.strip_suffix('"').and_then(|quoted| quoted.rsplit_once(" \"")) {
        Some((_, path)) => path,
        // Of a file that was not renamed both have one length.
        None => paths
            .get(paths.len() / 2 + 1..)
            .filter(|path| path.starts_with("b/"))
            .unwrap_or_else(|| paths.rsplit_once(" b/").map_or(paths, |(_, path)| path)),
    };
    path.strip_prefix("b/").unwrap_or(path).to_owned()
}

/// Where a hunk starts before and after, each with its number of lines.
fn hunk(line: &str) -> Option<((u64, u64), (u64, u64))> {
    let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (before, after) = ranges.split_once(" +")?;
    let range = |text: &str| {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((start.parse().ok()?, count.parse().ok()?))
    };
    Some((range(before)?, range(after)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_its_number_on_either_side() {
        let text = "diff --git a/src/a b.rs b/src/a b.rs\nindex 1..2 100644\n--- a/src/a b.rs\n+++ b/src/a b.rs\n\
                    @@ -3,3 +3,3 @@ fn f()\n same\n--- old\n+++ new\n\n\\ No newline at end of file\n\
                    diff --git a/new b/new\nnew file mode 100644\n@@ -0,0 +1 @@\n+one\n\
                    diff --git a/p.bin b/p.bin\nBinary files a/p.bin and b/p.bin differ\n";
        let files = diff_files(text);
        let heads: Vec<_> =
            files.iter().map(|it| (it.path.as_str(), it.change, it.added, it.removed)).collect();
        assert_eq!(heads, [("src/a b.rs", "", 1, 1), ("new", "added", 1, 0), ("p.bin", "binary", 0, 0)]);
        let lines: Vec<_> =
            files[0].lines.iter().map(|it| (it.kind.as_str(), it.numbers, it.text.as_str())).collect();
        assert_eq!(
            lines,
            [
                ("at", (None, None), "@@ -3,3 +3,3 @@ fn f()"),
                ("same", (Some(3), Some(3)), "same"),
                ("del", (Some(4), None), "-- old"),
                ("add", (None, Some(4)), "++ new"),
                ("same", (Some(5), Some(5)), ""),
                ("note", (None, None), "\\ No newline at end of file"),
            ]
        );
    }

    #[test]
    fn a_diff_that_was_cut_loses_nothing() {
        let files = diff_files(
            "diff --git \"a/\\303\\244\" \"b/\\303\\244\"\n@@ -1,9 +1,9 @@\n-a\n… 12 lines …\n@@ -90 +90 @@\n+b\n",
        );
        assert_eq!((files.len(), files[0].path.as_str()), (1, "\\303\\244"));
        let kinds: Vec<_> = files[0].lines.iter().map(|line| line.kind).collect();
        assert_eq!(
            kinds,
            [DiffKind::Hunk, DiffKind::Removed, DiffKind::Note, DiffKind::Hunk, DiffKind::Added]
        );
        assert_eq!(diff_files("words\n")[0].lines[0].text, "words");
        assert!(diff_files("").is_empty());
    }
}
