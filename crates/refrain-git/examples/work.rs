//! The cost of the digest of the work compared with `git status`, for `cargo xtask bench`. Makes a repository of
//! so many files in the given folder, changes one file in alternating rounds, and prints one JSON object with the
//! times of each, in milliseconds: wall time, and CPU time of all processes. `first` is a look without any cache.

mod common;

use std::error::Error;
use std::fs;
use std::io::Write;
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use common::{Figures, environment, run};
use refrain_git::{Repository, WorkSnapshot};

/// How many looks one measurement takes.
const LOOKS: u32 = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let dir = Utf8PathBuf::from(args.next().ok_or("which folder?")?);
    let rounds: u32 = args.next().ok_or("how many rounds?")?.parse()?;
    let files: usize = args.next().ok_or("how many files?")?.parse()?;
    let env = environment(&dir)?;
    let root = common::repository(&dir, files, &env)?;
    let repository = Repository::open(&root, &env)?;
    let changed = root.join("area3/part33/file7.rs");
    let change = || -> Result<(), Box<dyn Error>> {
        Ok(writeln!(fs::OpenOptions::new().append(true).open(&changed)?, "// changed")?)
    };
    let late = Instant::now() + Duration::from_secs(3600);
    let mut known = WorkSnapshot::default();
    known.look(Some(&repository), &root, (late, None))?;
    let (mut git, mut ours, mut first) = (Figures::default(), Figures::default(), Figures::default());
    for _ in 0..rounds {
        git.measure(LOOKS, |_| {
            change()?;
            run(&root, &env, &["status", "--porcelain"])
        })?;
        ours.measure(LOOKS, |_| {
            change()?;
            known.look(Some(&repository), &root, (late, None))?;
            Ok(())
        })?;
        first.measure(LOOKS, |_| {
            change()?;
            WorkSnapshot::default().look(Some(&repository), &root, (late, None))?;
            Ok(())
        })?;
    }
    #[expect(clippy::print_stdout, reason = "its result is what it prints")]
    {
        println!(
            "{}",
            serde_json::json!({
                "git_ms": git.wall, "git_cpu_ms": git.cpu, "ours_ms": ours.wall, "ours_cpu_ms": ours.cpu,
                "first_ms": first.wall, "first_cpu_ms": first.cpu,
            })
        );
    }
    Ok(())
}
