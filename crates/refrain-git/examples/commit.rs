//! What a loop's commit costs against `git commit -am`: what `cargo xtask bench` asks of the library. Makes a repository of
//! 10,000 files in the given folder, commits one changed file in alternating rounds, and prints one JSON object with what
//! each took, in milliseconds: wall time, and CPU time of all processes.

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::time::Instant;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::git::{Base, CommitResult, Oid};
use refrain_git::{CommitRequest, Repository};
use refrain_proc::tool::Tool;

const FOLDERS: usize = 100;
const FILES: usize = 100;
/// How many commits are measured at once.
const COMMITS: u32 = 5;

/// A way to commit, and what its rounds took.
#[derive(Default)]
struct Figures {
    wall: Vec<f64>,
    cpu: Vec<f64>,
}

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
    let mut bench = Bench::new(&dir)?;
    let (mut git, mut ours) = (Figures::default(), Figures::default());
    for _ in 0..rounds {
        bench.measure(&mut git, |bench| bench.git(&["commit", "-am", "loop: iteration 1"]))?;
        // Whose commits those were is no part of the question.
        bench.head = Some(bench.repository.resolve("HEAD")?);
        bench.measure(&mut ours, Bench::refrain)?;
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
    fn new(dir: &Utf8Path) -> Result<Self, Box<dyn Error>> {
        let root = dir.join("project");
        let env = vec![
            ("PATH".into(), std::env::vars_os().find(|(name, _)| name == "PATH").ok_or("no PATH")?.1),
            ("HOME".into(), dir.as_str().into()),
            ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
        ];
        for folder in 0..FOLDERS {
            let folder = root.join(format!("area{}/part{folder}", folder % 10));
            fs::create_dir_all(&folder)?;
            for file in 0..FILES {
                let text = format!("// {folder} {file}\n").repeat(20);
                fs::File::create(folder.join(format!("file{file}.rs")))?.write_all(text.as_bytes())?;
            }
        }
        run(&root, &env, &["init", "-q", "-b", "main"])?;
        for (key, value) in [("user.name", "Bench"), ("user.email", "bench@localhost")] {
            run(&root, &env, &["config", key, value])?;
        }
        run(&root, &env, &["add", "."])?;
        // So many new objects would set off housekeeping in the background, in the middle of what is measured.
        run(&root, &env, &["-c", "gc.auto=0", "-c", "maintenance.auto=0", "commit", "-qm", "Begin"])?;
        run(&root, &env, &["gc", "-q"])?;
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
            largest_file: 10 << 20,
            allow_secrets: &[],
            cancel: None,
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

    /// What one of some commits takes. CPU time is told in hundredths of a second: one commit alone would be none or one.
    fn measure(
        &mut self,
        figures: &mut Figures,
        mut commit: impl FnMut(&mut Self) -> Result<(), Box<dyn Error>>,
    ) -> Result<(), Box<dyn Error>> {
        let (wall, cpu) = (Instant::now(), cpu_of_all()?);
        for _ in 0..COMMITS {
            self.change()?;
            commit(self)?;
        }
        figures.wall.push(wall.elapsed().as_secs_f64() * 1e3 / f64::from(COMMITS));
        figures.cpu.push((cpu_of_all()? - cpu) / f64::from(COMMITS));
        Ok(())
    }
}

fn run(root: &Utf8Path, env: &[(OsString, OsString)], args: &[&str]) -> Result<(), Box<dyn Error>> {
    Tool::new("git", root.as_std_path()).env(env).args(args).output()?;
    Ok(())
}

/// The CPU time of this process and of every one that it waited for, in milliseconds.
fn cpu_of_all() -> Result<f64, Box<dyn Error>> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The name of the program stands in parentheses and may hold anything. Past it are the third field and all others.
    let (_, rest) = stat.rsplit_once(')').ok_or("proc(5)")?;
    let ticks = rest.split_whitespace().skip(11).take(4).filter_map(|field| field.parse::<f64>().ok());
    // Ticks for user space are hundredths of a second on every Linux.
    Ok(ticks.sum::<f64>() * 10.0)
}
