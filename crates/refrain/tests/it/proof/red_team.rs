//! Agents that cheat and honest agents, each in every way of running: the threat model's "caught" is caught, its
//! "possible" is possible, and no honest work is refused. The table of `docs/explanation/threat-model.md` is made from the same
//! data.

mod data;
mod labs;

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rstest::rstest;
use serde_json::json;
use testkit::{Sandbox, write};

use self::data::{CHEATS, Cheat, HONEST};
use self::labs::Lab;
use crate::{CLAIM, sandbox};

/// The ways of running, in the order of a cheat's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Default,
    Protect,
    Auto,
    Clean,
    AutoClean,
}

const WAYS: [Way; 5] = [Way::Default, Way::Protect, Way::Auto, Way::Clean, Way::AutoClean];

impl Way {
    fn flags(self, lab: &Lab) -> Vec<&'static str> {
        let given = ["--gate", lab.gate];
        let auto = [&["--auto-gates", "--yes"], lab.auto].concat();
        match self {
            Self::Default => given.to_vec(),
            Self::Protect => [&given[..], lab.protect].concat(),
            Self::Auto => auto,
            Self::Clean => [&given[..], &["--clean-checkout"]].concat(),
            Self::AutoClean => [&auto[..], &["--clean-checkout"]].concat(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Refused,
    Verified,
}

fn project(lab: &Lab) -> Sandbox {
    let sandbox = sandbox();
    for (path, text) in lab.files {
        let path = sandbox.project().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        write(&path, text);
        if path.extension().is_some_and(|end| end == "sh") {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    sandbox.git(&["add", "."]);
    sandbox.git(&["commit", "-qm", "A project"]);
    if !lab.setup.is_empty() {
        sandbox.tool("sh", &["-ec", lab.setup]).run().with_code(0);
    }
    sandbox
}

#[expect(clippy::disallowed_methods, reason = "which test runners this machine has")]
fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// `PATH` with the lab's folder first, then the cargo that runs these tests: a cargo that rustup chooses needs a home.
fn path(sandbox: &Sandbox, lab: &Lab) -> String {
    let cargo = variable("CARGO");
    let cargo = Path::new(&cargo).parent().map(|folder| folder.display().to_string()).unwrap_or_default();
    let own = if lab.path.is_empty() {
        String::new()
    } else {
        format!("{}/{}:", sandbox.project().display(), lab.path)
    };
    format!("{own}{cargo}:{}", variable("PATH"))
}

fn run(lab: &Lab, way: Way, script: &str, mistake: Option<(&str, &str)>) -> (Verdict, String) {
    let sandbox = project(lab);
    let agent = sandbox.agent("agent", &format!("{script}\n{CLAIM}"));
    let words = ["start", "--command", &agent, "--name", "job", "-p", "Mend the sum.", "-m", "1"];
    let words = [&words[..], &way.flags(lab)].concat();
    // Python compares bytecode by whole seconds.
    let run =
        sandbox.command(&words).env("PATH", &path(&sandbox, lab)).env("PYTHONDONTWRITEBYTECODE", "1").run();
    let said = format!("{}{}", run.stdout, run.stderr);
    let status = sandbox.status("job");
    let is_verified = status["verified"] == json!(true);
    assert_eq!(is_verified, run.code == 0, "{} {way:?} {script}\n{said}", lab.name);
    let is_there = |(file, text): (&str, &str)| {
        let tree = status["tree"].as_str().unwrap();
        sandbox.git(&["show", &format!("{tree}:{file}")]).contains(text)
    };
    let went_through = is_verified && mistake.is_none_or(is_there);
    (if went_through { Verdict::Verified } else { Verdict::Refused }, said)
}

/// Whether all programs of the lab are there; prints the name of a missing one.
fn is_there(lab: &Lab) -> bool {
    has_programs(lab.name, lab.needs)
}

/// Whether all these programs are in `PATH`; prints the name of a missing one.
pub(crate) fn has_programs(name: &str, needs: &[&str]) -> bool {
    let missing = needs.iter().find(|program| {
        let folders = variable("PATH");
        !std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
    });
    if let Some(program) = missing {
        eprintln!("skipped: {name} needs {program}, which is not in PATH");
    }
    missing.is_none()
}

/// Runs cheats in one way, and reports the wrong cells of the table.
fn check(cheats: impl Iterator<Item = &'static Cheat>, way: Way) {
    let mut wrong = String::new();
    for cheat in cheats.filter(|cheat| is_there(cheat.lab)) {
        let cell = cheat.cells.as_bytes()[WAYS.iter().position(|it| *it == way).unwrap()];
        let expected = match cell {
            b'c' => Verdict::Refused,
            b'p' => Verdict::Verified,
            _ => continue,
        };
        let (verdict, said) = run(cheat.lab, way, cheat.script, cheat.mistake);
        if verdict != expected {
            let _ = writeln!(
                wrong,
                "== {}: {} is {verdict:?}, not {expected:?}:\n{said}",
                cheat.lab.name, cheat.name
            );
        }
    }
    assert!(wrong.is_empty(), "{way:?}\n{wrong}");
}

#[rstest]
fn the_commonest_cheats_end_as_the_threat_model_says(
    #[values(Way::Default, Way::Protect, Way::Auto, Way::Clean, Way::AutoClean)] way: Way,
) {
    check(CHEATS.iter().copied().flatten().filter(|cheat| cheat.quick), way);
}

#[rstest]
#[ignore = "hundreds of loops with real test runners take minutes: .ci/nightly"]
fn every_cheat_ends_as_the_threat_model_says(
    #[values(Way::Default, Way::Protect, Way::Auto, Way::Clean, Way::AutoClean)] way: Way,
    #[values(0, 1, 2, 3, 4)] language: usize,
) {
    check(CHEATS[language].iter(), way);
}

fn check_honest(language: usize, way: Way, most: usize) {
    for agent in HONEST[language].iter().filter(|agent| is_there(agent.lab)).take(most) {
        // Its project offers no gate.
        if agent.lab.name == "git" && matches!(way, Way::Auto | Way::AutoClean) {
            continue;
        }
        let (verdict, said) = run(agent.lab, way, &format!("{}\n{}", agent.lab.mend, agent.script), None);
        assert_eq!(verdict, Verdict::Verified, "{} {way:?}: {}\n{said}", agent.lab.name, agent.name);
    }
}

#[rstest]
fn honest_work_is_verified(
    #[values(Way::Default, Way::Protect, Way::Auto, Way::Clean, Way::AutoClean)] way: Way,
) {
    check_honest(0, way, 4);
    check_honest(1, way, 2);
}

#[rstest]
#[ignore = "real test runners take minutes: .ci/nightly"]
fn all_honest_work_is_verified(
    #[values(Way::Default, Way::Protect, Way::Auto, Way::Clean, Way::AutoClean)] way: Way,
    #[values(0, 1, 2, 3)] language: usize,
) {
    check_honest(language, way, usize::MAX);
}

#[test]
fn there_are_sixty_cheats_and_thirty_honest_agents_and_each_cell_has_its_reason() {
    let cheats: Vec<_> = CHEATS.iter().copied().flatten().collect();
    assert!(cheats.len() >= 60 && HONEST.iter().copied().flatten().count() >= 30);
    assert!(cheats.iter().filter(|cheat| cheat.quick).count() * 4 >= cheats.len());
    for cheat in cheats {
        assert_eq!(cheat.cells.len(), WAYS.len(), "{}", cheat.name);
        assert_eq!(cheat.cells.contains('p'), !cheat.reason.is_empty(), "{}", cheat.name);
    }
}

fn table() -> String {
    let mut table = "| cheat | default | protect | auto | clean | auto + clean | why it stays possible |\n|---|---|---|---|---|---|---|\n".to_owned();
    for cheat in CHEATS.iter().copied().flatten() {
        let cells = cheat.cells.chars().map(|cell| match cell {
            'c' => "caught",
            'p' => "possible",
            _ => "-",
        });
        let cells: Vec<_> = cells.collect();
        let _ = writeln!(table, "| {} | {} | {} |", cheat.name, cells.join(" | "), cheat.reason);
    }
    table
}

#[test]
fn the_threat_model_has_this_table() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/explanation/threat-model.md");
    let page = fs::read_to_string(page).unwrap();
    let table = table();
    assert!(page.contains(&table), "docs/explanation/threat-model.md is to have this table:\n{table}");
}
