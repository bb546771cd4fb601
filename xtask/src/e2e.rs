//! `cargo xtask e2e`: tests that need more than Rust and git, and are therefore ignored by `cargo test`.
//!
//! The tier `agents` runs the real agent programs against a scripted model, `browser` the dashboard in Chromium,
//! `forge` the real `gh` against a forge on loopback, `fleet` loops on several machines with a server of Temporal. Programs are installed and tests built with network access; the
//! tests themselves run in a network namespace with loopback only, if the machine allows one, so that no program can
//! reach outside.

mod fleet;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use clap::ValueEnum;
use rustix::process::geteuid;
use serde_json::Value;

use crate::failure::{Result, fail};
use crate::process::{capture, cargo, command, succeed};
use crate::workspace::{Package, Workspace};

/// A test binary: its package and its name.
type Suite = (&'static str, &'static str);

/// Whether a test binary is one of a tier, which is linked only when the tier is run.
pub(crate) fn is_tier(package: &str, suite: &str) -> bool {
    Tier::value_variants().iter().any(|tier| tier.suites().contains(&(package, suite)))
}

/// Parts of the names of smoke tests: the main job of each program, one proof, one plan, and one loop in a sandbox.
const SMOKE: [&str; 4] =
    ["main_job", "proves_a_python_package", "codex_lands_a_plan_side_by_side", "claude_works_in_a_sandbox"];

/// The options of a run.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The tier of tests
    tier: Tier,
    /// Only the tests that name one of these agents
    #[arg(long, value_delimiter = ',', value_name = "PROGRAM")]
    only: Vec<Program>,
    /// Only the main job; of the agents that of each, one proof, one plan, and one loop in a sandbox
    #[arg(long)]
    smoke: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Tier {
    /// The real agent programs, against a scripted model
    Agents,
    /// The dashboard in a real browser
    Browser,
    /// The real program of a forge, against a forge on loopback
    Forge,
    /// Loops that machines take over from each other, with a server of Temporal on loopback
    Fleet,
}

impl Tier {
    const fn suites(self) -> &'static [Suite] {
        match self {
            Self::Agents => &[("testkit", "real_agents"), ("refrain", "agents")],
            Self::Browser | Self::Forge => &[("refrain", "outside")],
            // In a workspace of its own.
            Self::Fleet => &[],
        }
    }

    /// The module of its tests, if the binary has tests of other tiers too.
    const fn module(self) -> &'static str {
        match self {
            Self::Agents | Self::Fleet => "",
            Self::Browser => "browser::",
            Self::Forge => "forge::",
        }
    }

    fn installs(self, agents: &[&'static str]) -> Vec<&'static str> {
        match self {
            Self::Agents => agents.to_vec(),
            Self::Browser => vec!["axe"],
            Self::Forge | Self::Fleet => Vec::new(),
        }
    }

    /// The programs that have to be there, and the Debian packages that they come in.
    const fn needs(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Agents | Self::Fleet => &[],
            Self::Browser => &[("chromium", "chromium"), ("chromedriver", "chromium-driver")],
            Self::Forge => &[("gh", "gh")],
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Program {
    Claude,
    Codex,
    Opencode,
    Gemini,
}

impl Program {
    const fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Opencode => "opencode",
            Self::Gemini => "gemini",
        }
    }
}

/// Installs, builds and runs the tests, and prints what was run.
pub(crate) fn run(options: &Options) -> Result<()> {
    let tier = options.tier;
    let started = Instant::now();
    let workspace = Workspace::load()?;
    if matches!(tier, Tier::Fleet) {
        return fleet::run(&workspace, options.smoke);
    }
    for (program, package) in tier.needs() {
        if capture(command(Path::new(program)).arg("--version")).is_err() {
            return fail(format!(
                "{program} is missing: install Debian's package {package}, or what your system has of it"
            ));
        }
    }
    let is_all = options.only.is_empty();
    let programs = if is_all { Program::value_variants() } else { &options.only };
    let programs: Vec<&str> = programs.iter().map(|program| program.name()).collect();
    let tools = tier.installs(&programs);
    if !tools.is_empty() {
        let installer = build(&workspace, ["build", "--bin", "install_tools"])?;
        succeed(command(&installer).current_dir(&workspace.root).args(tools))?;
    }
    // It makes a thousand loops.
    let catalog = match tier {
        Tier::Browser => Some(build(&workspace, ["build", "--example", "catalog"])?),
        Tier::Agents | Tier::Forge | Tier::Fleet => None,
    };
    let place = TestNetwork::find();
    println!("{}", place.described());
    let (mut ran, mut failed) = (Vec::new(), Vec::new());
    for (package, suite) in tier.suites() {
        let folder = folder(&workspace, package, suite)?;
        let binary = build(&workspace, ["test", "--test", suite])?;
        let wanted = if is_all { &[] } else { programs.as_slice() };
        let mut tests = ignored(&binary, &folder)?;
        tests.retain(|test| test.starts_with(tier.module()));
        let tests = chosen(&tests, wanted, options.smoke);
        if tests.is_empty() {
            println!("{suite}: no test is for this");
            continue;
        }
        println!("{suite}: {}", tests.join(", "));
        let mut running = place.command(&binary);
        if let Some(catalog) = &catalog {
            running.env("REFRAIN_E2E_CATALOG", catalog);
        }
        running.current_dir(&folder).args(["--ignored", "--exact"]).args(&tests);
        if let Err(failure) = succeed(&mut running) {
            eprintln!("{failure}");
            failed.push(*suite);
        }
        ran.push(format!("{} of {suite}", tests.len()));
    }
    if ran.is_empty() {
        return fail("no test was run");
    }
    if !failed.is_empty() {
        return fail(format!("tests of {} failed", failed.join(" and ")));
    }
    println!("ran {}: {} s", ran.join(" and "), started.elapsed().as_secs());
    Ok(())
}

/// The folder of the package, which must have that test binary: a tier that lost one would be run in half unnoticed.
fn folder(workspace: &Workspace, package: &str, suite: &str) -> Result<PathBuf> {
    let has_suite = |package: &&Package| {
        package.targets.iter().any(|target| target.kind == "test" && target.name == suite)
    };
    match workspace.package(package).filter(has_suite) {
        Some(package) => Ok(package.folder().to_owned()),
        None => fail(format!("{package} has no test binary `{suite}`")),
    }
}

/// Builds a program, or a test binary and with it the programs of its package; returns its path. It is built as a
/// part of the whole workspace: alone, its dependencies would be built once more with fewer features.
fn build(workspace: &Workspace, [verb, kind, name]: [&str; 3]) -> Result<PathBuf> {
    let mut building = cargo();
    building.current_dir(&workspace.root).args([verb, "--quiet", "--workspace", kind, name]);
    building.args(["--message-format", "json"]);
    let said = capture(if verb == "test" { building.arg("--no-run") } else { &mut building })?;
    let messages = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut paths = messages
        .filter(|message| message["target"]["name"] == name)
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from));
    match paths.next() {
        Some(path) => Ok(path),
        None => fail(format!("cargo named nothing that it built as `{name}`")),
    }
}

/// The ignored tests of a binary that belong to this tier.
fn ignored(binary: &Path, folder: &Path) -> Result<Vec<String>> {
    let listed =
        capture(command(binary).current_dir(folder).args(["--list", "--ignored", "--format", "terse"]))?;
    Ok(listed.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

/// The tests that name one of the programs, or all if no program is given; only smoke tests if `is_smoke` is set.
fn chosen(tests: &[String], programs: &[&str], is_smoke: bool) -> Vec<String> {
    let is_wanted = |test: &&String| {
        (programs.is_empty() || programs.iter().any(|program| test.contains(program)))
            && (!is_smoke || SMOKE.iter().any(|name| test.contains(name)))
    };
    tests.iter().filter(is_wanted).cloned().collect()
}

enum TestNetwork {
    /// In a network of its own that has only loopback, entered with this option of `unshare`.
    Loopback(&'static str),
    /// Here, because no such network can be made.
    Here,
}

impl TestNetwork {
    /// Runs a program in the new network once loopback is up in it.
    const ENTER: &str = r#"PATH="$PATH:/usr/sbin:/sbin" ip link set lo up && exec "$@""#;

    fn find() -> Self {
        let option = if geteuid().is_root() { "--net" } else { "--map-root-user" };
        let loopback = Self::Loopback(option);
        if capture(&mut loopback.command(Path::new("true"))).is_ok() { loopback } else { Self::Here }
    }

    fn command(&self, program: &Path) -> Command {
        match self {
            Self::Loopback(option) => {
                let mut entering = command("unshare");
                entering.args([*option, "--net", "--", "sh", "-c", Self::ENTER, "sh"]).arg(program);
                entering
            }
            Self::Here => command(program),
        }
    }

    const fn described(&self) -> &'static str {
        match self {
            Self::Loopback(_) => "the tests run in a network of their own that has only loopback",
            Self::Here => {
                "NOTE: no network of only loopback can be made here (unshare and ip are needed, and the right to use \
                 them): the tests run with the network of this machine, and the programs are trusted to use none of it"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::chosen;

    #[test]
    fn tests_are_chosen_by_program_and_kind() {
        let all =
            ["claude::main_job", "claude::hangs", "codex::main_job", "several_at_once"].map(str::to_owned);
        for (programs, is_smoke, expected) in [
            (&[][..], false, &[0, 1, 2, 3][..]),
            (&[], true, &[0, 2]),
            (&["claude"], false, &[0, 1]),
            (&["claude", "codex"], true, &[0, 2]),
            (&["gemini"], false, &[]),
        ] {
            let expected: Vec<&String> = expected.iter().map(|place: &usize| &all[*place]).collect();
            assert_eq!(chosen(&all, programs, is_smoke).iter().collect::<Vec<_>>(), expected, "{programs:?}");
        }
    }
}
