//! The cost of a loop's commit compared with `git commit -am`, for `cargo xtask bench`. Makes a repository of so
//! many files in the given folder, commits one changed file in alternating rounds, and prints one JSON object with the
//! times of each, in milliseconds: wall time, and CPU time of all processes.

mod common;

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::io::Write;

use camino::{Utf8Path, Utf8PathBuf};
use common::{Figures, environment, run};
use refrain_core::git::{Base, CommitResult, Oid};
use refrain_git::{Bounds, CommitRequest, Repository};

/// How many commits one measurement takes.
const COMMITS: u32 = 5;

struct Bench {
    root: Utf8PathBuf,
    index: Utf8PathBuf,
    env: Vec<(OsString, OsString)>,
    repository: Repository,
    base: Base,
    head: Option<Oid>,
    changes: u32,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let dir = Utf8PathBuf::from(args.next().ok_or("which folder?")?);
    let rounds: u32 = args.next().ok_or("how many rounds?")?.parse()?;
    let files: usize = args.next().ok_or("how many files?")?.parse()?;
    let mut bench = Bench::new(&dir, files)?;
    let (mut git, mut ours) = (Figures::default(), Figures::default());
    for _ in 0..rounds {
        git.measure(COMMITS, |_| {
            bench.change()?;
            bench.git(&["commit", "-am", "loop: iteration 1"])
        })?;
        // The author of those commits does not matter here.
        bench.head = Some(bench.repository.resolve("HEAD")?);
        ours.measure(COMMITS, |_| {
            bench.change()?;
            bench.refrain()
        })?;
    }
    #[expect(clippy::print_stdout, reason = "its result is what it prints")]
    {
        println!(
            "{}",
            serde_json::json!({
                "git_ms": git.wall, "git_cpu_ms": git.cpu, "ours_ms": ours.wall, "ours_cpu_ms": ours.cpu,
            })
        );
    }
    Ok(())
}

impl Bench {
    fn new(dir: &Utf8Path, files: usize) -> Result<Self, Box<dyn Error>> {
        let env = environment(dir)?;
        let root = common::repository(dir, files, &env)?;
        let repository = Repository::open(&root, &env)?;
        let base = repository.survey()?;
        let (index, head) = (dir.join("index"), base.head.clone());
        Ok(Self { index, root, env, repository, base, head, changes: 0 })
    }

    fn git(&self, args: &[&str]) -> Result<(), Box<dyn Error>> {
        run(&self.root, &self.env, args)
    }

    fn refrain(&mut self) -> Result<(), Box<dyn Error>> {
        let report = self.repository.commit(CommitRequest {
            base: &self.base,
            last_head: self.head.as_ref(),
            id: &"bench".parse()?,
            iteration: 1,
            message: "loop: iteration 1",
            index: &self.index,
            bounds: Bounds { largest_file: 10 << 20, allow_secrets: &[], cancel: None },
        })?;
        self.head = report.head;
        match report.result {
            CommitResult::Made { .. } => Ok(()),
            CommitResult::Skipped(skipped) => Err(format!("skipped: {skipped:?}").into()),
        }
    }

    fn change(&mut self) -> Result<(), Box<dyn Error>> {
        self.changes += 1;
        let path = self.root.join("area3/part33/file7.rs");
        writeln!(fs::OpenOptions::new().append(true).open(path)?, "// {}", self.changes)?;
        Ok(())
    }
}
