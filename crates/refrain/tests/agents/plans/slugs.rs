//! A plan for the package `slugs` as a person would write one: thirteen tasks in five waves; and a model that works on
//! it only by its prompts.
//!
//! Side by side, 4 and 5 change the same lines, and so do 11 and 12. What 7 and 8 make merges cleanly, and fails the tests
//! only together. One after the other, 8 is the first to see that.

use serde_json::{Value, json};
use testkit::{Request, Turn};

pub(crate) const TAG: &str = "slugs";

pub(crate) const VERIFY: &str = "python3 -m unittest discover -s tests";

/// Keeps both sides of every conflict.
const SETTLE: &str =
    "git grep -l '^<<<<<<< ' | xargs sed -i '/^||||||| /,/^=======$/d; /^<<<<<<< /d; /^>>>>>>> /d'";

/// Removes the temporary file of a `sed -i` that was killed with its runner.
const TIDY: &str = "find . -name 'sed??????' -delete;";

/// A task, and the model's work on it.
pub(crate) struct Task {
    pub(crate) id: usize,
    pub(crate) wave: usize,
    pub(crate) title: &'static str,
    details: &'static str,
    on: &'static [usize],
    /// The first command for the shell.
    edit: &'static str,
    file: Option<(&'static str, &'static str)>,
    pub(crate) files: &'static [&'static str],
}

/// A test file for one module, as all of the package are.
macro_rules! tests {
    ($names:literal, $checks:literal) => {
        concat!(
            "import pathlib\nimport sys\nimport unittest\n\n",
            "sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / \"src\"))\n\n",
            $names,
            "  # noqa: E402\n\n\nclass It(unittest.TestCase):\n    def test_it(self):\n",
            $checks,
        )
    };
}

/// The tasks, in the order of their file.
pub(crate) static TASKS: [Task; 13] = [
    Task {
        id: 1,
        wave: 1,
        title: "Split a title into words",
        details: "words(title) in src/slugs/words.py gives the plain words of a title.",
        on: &[],
        edit: "printf 'import re\\n\\nfrom .letters import plain\\n\\n\\ndef words(title):\\n    \"\"\"The plain words of a \
               title.\"\"\"\\n    return re.findall(\"[a-z0-9]+\", plain(title))\\n' > src/slugs/words.py",
        file: Some((
            "tests/test_words.py",
            tests!(
                "from slugs.words import words",
                "        self.assertEqual(words(\"The Ü\"), [\"the\", \"u\"])\n"
            ),
        )),
        files: &["src/slugs/words.py", "tests/test_words.py"],
    },
    Task {
        id: 2,
        wave: 1,
        title: "Give the longest length a name",
        details: "LONGEST in src/slugs/limits.py, and slug uses it.",
        on: &[],
        edit: "sed -i 's/= 40/= LONGEST/; s/^from .letters.*/&\\nfrom .limits import LONGEST/' src/slugs/slug.py",
        file: Some(("src/slugs/limits.py", "\"\"\"What a name may have.\"\"\"\n\nLONGEST = 40\n")),
        files: &["src/slugs/limits.py", "src/slugs/slug.py"],
    },
    Task {
        id: 3,
        wave: 1,
        title: "List the words that say nothing",
        details: "STOPS in src/slugs/stops.py.",
        on: &[],
        edit: "ls src/slugs",
        file: Some((
            "src/slugs/stops.py",
            "\"\"\"Words that say nothing.\"\"\"\n\nSTOPS = frozenset({\"a\", \"of\", \"the\"})\n",
        )),
        files: &["src/slugs/stops.py"],
    },
    Task {
        id: 4,
        wave: 2,
        title: "Offer words to everybody",
        details: "The package offers words.",
        on: &[1],
        edit: "sed -i 's/^from .slug import slug$/&\\nfrom .words import words/' src/slugs/__init__.py",
        file: None,
        files: &["src/slugs/__init__.py"],
    },
    Task {
        id: 5,
        wave: 2,
        title: "Offer the longest length to everybody",
        details: "The package offers LONGEST.",
        on: &[2],
        edit: "sed -i 's/^from .slug import slug$/&\\nfrom .limits import LONGEST/' src/slugs/__init__.py",
        file: None,
        files: &["src/slugs/__init__.py"],
    },
    Task {
        id: 6,
        wave: 2,
        title: "Leave out the words that say nothing",
        details: "telling(title) in src/slugs/telling.py.",
        on: &[1, 3],
        edit: "printf 'from .stops import STOPS\\nfrom .words import words\\n\\n\\ndef telling(title):\\n    \"\"\"The words \
               that say something.\"\"\"\\n    return [word for word in words(title) if word not in STOPS]\\n' > \
               src/slugs/telling.py",
        file: Some((
            "tests/test_telling.py",
            tests!(
                "from slugs.telling import telling",
                "        self.assertEqual(telling(\"The end\"), [\"end\"])\n"
            ),
        )),
        files: &["src/slugs/telling.py", "tests/test_telling.py"],
    },
    Task {
        id: 7,
        wave: 3,
        title: "Have everybody say how many words they want",
        details: "words takes the most words to give, and has no default for it.",
        on: &[6],
        edit: "sed -i 's/words(title)/words(title, most)/; s/plain(title))$/&[:most]/' src/slugs/words.py && \
               sed -i 's/words(title)/words(title, 99)/' src/slugs/telling.py && \
               sed -i 's/words(\"The Ü\")/words(\"The Ü end\", 2)/' tests/test_words.py",
        file: None,
        files: &["src/slugs/telling.py", "src/slugs/words.py", "tests/test_words.py"],
    },
    Task {
        id: 8,
        wave: 3,
        title: "Make initials of a title",
        details: "initials(title) in src/slugs/initials.py.",
        on: &[4],
        edit: "printf 'from .words import words\\n\\n\\ndef initials(title):\\n    \"\"\"The first letters of its \
               words.\"\"\"\\n    return \"\".join(word[0] for word in words(title))\\n' > src/slugs/initials.py",
        file: Some((
            "tests/test_initials.py",
            tests!(
                "from slugs.initials import initials",
                "        self.assertEqual(initials(\"The end\"), \"te\")\n"
            ),
        )),
        files: &["src/slugs/initials.py", "tests/test_initials.py"],
    },
    Task {
        id: 9,
        wave: 3,
        title: "Begin a list of changes",
        details: "CHANGES.md, with a heading for what is to come.",
        on: &[5],
        edit: "git log --oneline",
        file: Some(("CHANGES.md", "# Changes\n\n## 1.3.0\n\n")),
        files: &["CHANGES.md"],
    },
    Task {
        id: 10,
        wave: 4,
        title: "Make it a program",
        details: "python3 -m slugs TITLE prints the name and the initials.",
        on: &[7, 8],
        edit: "cat src/slugs/initials.py src/slugs/slug.py",
        file: Some((
            "src/slugs/__main__.py",
            "import sys\n\nfrom .initials import initials\nfrom .slug import slug\n\ntitle = \" \".join(sys.argv[1:])\n\
             print(slug(title), initials(title))\n",
        )),
        files: &["src/slugs/__main__.py"],
    },
    Task {
        id: 11,
        wave: 4,
        title: "Tell of the limit in the changes",
        details: "A line of CHANGES.md about LONGEST.",
        on: &[9],
        edit: "echo '- `LONGEST` is how long a name may be.' >> CHANGES.md",
        file: None,
        files: &["CHANGES.md"],
    },
    Task {
        id: 12,
        wave: 4,
        title: "Tell of the initials in the changes",
        details: "A line of CHANGES.md about initials.",
        on: &[8, 9],
        edit: "echo '- `initials` is new.' >> CHANGES.md",
        file: None,
        files: &["CHANGES.md"],
    },
    Task {
        id: 13,
        wave: 5,
        title: "Give it its number",
        details: "Version 1.3.0, in pyproject.toml.",
        on: &[10, 11, 12],
        edit: "sed -i 's/1\\.2\\.0/1.3.0/' pyproject.toml",
        file: None,
        files: &["pyproject.toml"],
    },
];

pub(crate) fn file() -> String {
    let row = |task: &Task| {
        json!({
            "id": task.id, "title": task.title, "description": task.details,
            "status": "pending", "complexity": 2, "depends_on": task.on,
        })
    };
    let tasks: Vec<Value> = TASKS.iter().map(row).collect();
    format!("{:#}\n", json!({ "tag": TAG, "tasks": tasks }))
}

pub(crate) fn told(prompt: &str) -> Option<&'static Task> {
    let id = prompt.strip_prefix("You work on task ")?.split(' ').next()?.parse().ok();
    TASKS.iter().find(|task| Some(task.id) == id)
}

/// The model: it does the prompt's task, resolves conflicts, fixes failures, then claims.
pub(crate) fn work(request: &Request) -> Turn {
    let prompt = request.prompt();
    let Some(task) = told(prompt) else { return Turn::say("I was told of no task.") };
    let (edit, file) = if prompt.contains("CONFLICT:") {
        (SETTLE, None)
    } else if prompt.contains("NOT LANDED:") || prompt.contains("CLAIM REFUSED") {
        ("sed -i 's/words(title))$/words(title, 99))/' src/slugs/initials.py", None)
    } else {
        (task.edit, task.file)
    };
    let write = file.map(|(path, text)| Turn::write(path, text));
    let steps: Vec<Turn> = [Turn::bash(format!("{TIDY} {edit}"))].into_iter().chain(write).collect();
    let done = || Turn::say(format!("{}: done.\n\nTASK_COMPLETE", task.title));
    steps.get(request.tool_results.len()).cloned().unwrap_or_else(done)
}
