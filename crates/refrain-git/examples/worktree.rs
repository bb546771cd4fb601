//! The cost of a worktree of the pool and of a landing, compared with the git commands a user would type, for `cargo
//! xtask bench`. Makes a repository of so many files in the given folder, and prints one JSON object with the times of
//! each way in alternating rounds, in milliseconds: wall time, and CPU time of all processes.

mod common;

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::io::Write;

use camino::{Utf8Path, Utf8PathBuf};
use common::{Figures, environment, run};
use refrain_core::git::Oid;
use refrain_git::{
    Bounds, HandOverRequest, HandedOver, LandRequest, LandingOutcome, MergeRequest, MergeResult,
    ReadyRequest, ReadySlot, Repository, Work,
};

/// How many files one task changes.
const CHANGED: usize = 20;
/// How many tasks land together.
const TASKS: u32 = 5;

struct Bench {
    dir: Utf8PathBuf,
    root: Utf8PathBuf,
    env: Vec<(OsString, OsString)>,
    repository: Repository,
    begin: Oid,
    /// The commits of tasks, each based on `begin`.
    works: Vec<Oid>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let dir = Utf8PathBuf::from(args.next().ok_or("which folder?")?);
    let rounds: u32 = args.next().ok_or("how many rounds?")?.parse()?;
    let files: usize = args.next().ok_or("how many files?")?.parse()?;
    let bench = Bench::new(&dir, files)?;
    let mut figures: [(&str, Figures); 6] = ["git_add", "fresh", "used", "git_merge", "landing", "hand_over"]
        .map(|name| (name, Figures::default()));
    bench.ready("used", 0)?;
    for round in 0..rounds {
        let [git_add, fresh, used, git_merge, landing, hand_over] = &mut figures;
        let plain = bench.dir.join("plain");
        let begin = bench.begin.as_str();
        git_add
            .1
            .measure(1, |_| bench.git(&["worktree", "add", "--quiet", "--detach", plain.as_str(), begin]))?;
        bench.git(&["worktree", "remove", "--force", plain.as_str()])?;
        fresh.1.measure(1, |_| bench.ready(&format!("fresh-{round}"), 0))?;
        bench.git(&["worktree", "remove", "--force", bench.folder(&format!("fresh-{round}")).as_str()])?;
        used.1.measure(2, |piece| bench.ready("used", 1 + 2 * round + piece))?;
        git_merge.1.measure(TASKS, |task| bench.merge(task))?;
        bench.git(&["reset", "-q", "--hard", begin])?;
        let mut tip = bench.begin.clone();
        landing.1.measure(TASKS, |task| {
            tip = bench.land(&tip, task)?;
            Ok(())
        })?;
        hand_over.1.measure(1, |_| bench.hand_over(&tip))?;
        bench.git(&["reset", "-q", "--hard", begin])?;
        bench.git(&["update-ref", "-d", "refs/refrain/plans/bench"])?;
    }
    let told = figures.iter().flat_map(|(name, it)| {
        [(format!("{name}_ms"), it.wall.clone().into()), (format!("{name}_cpu_ms"), it.cpu.clone().into())]
    });
    #[expect(clippy::print_stdout, reason = "its result is what it prints")]
    {
        println!("{}", serde_json::Value::Object(told.collect()));
    }
    Ok(())
}

impl Bench {
    fn new(dir: &Utf8Path, files: usize) -> Result<Self, Box<dyn Error>> {
        let env = environment(dir)?;
        let root = common::repository(dir, files, &env)?;
        let repository = Repository::open(&root, &env)?;
        let begin = repository.resolve("HEAD")?;
        let mut bench = Self { dir: dir.to_owned(), root, env, repository, begin, works: Vec::new() };
        for task in 0..TASKS as usize {
            for file in 0..CHANGED {
                let path = bench.root.join(format!("area{task}/part{task}/file{file}.rs"));
                writeln!(fs::OpenOptions::new().append(true).open(path)?, "// {task}")?;
            }
            bench.git(&["commit", "-qam", "Work"])?;
            bench.works.push(bench.repository.resolve("HEAD")?);
            bench.git(&["reset", "-q", "--hard", bench.begin.as_str()])?;
        }
        Ok(bench)
    }

    fn git(&self, args: &[&str]) -> Result<(), Box<dyn Error>> {
        run(&self.root, &self.env, args)
    }

    fn folder(&self, slot: &str) -> Utf8PathBuf {
        self.dir.join("_pool").join(slot).join("project")
    }

    /// The slot is made ready for another task.
    fn ready(&self, slot: &str, turn: u32) -> Result<(), Box<dyn Error>> {
        let folder = self.folder(slot);
        let beside = folder.parent().ok_or("a folder")?;
        fs::create_dir_all(beside)?;
        let readied = self.repository.ready(ReadyRequest {
            folder: &folder,
            beside,
            branch: &format!("refrain/bench/{slot}-{turn}"),
            at: &self.works[turn as usize % self.works.len()],
            was: None,
            bounds: Bounds { largest_file: 10 << 20, allow_secrets: &[], cancel: None },
        })?;
        match readied {
            ReadySlot::Ready { saved: None } => Ok(()),
            other => Err(format!("{other:?}").into()),
        }
    }

    /// The manual way: a squashed merge in a checkout, and a commit of it.
    fn merge(&self, task: u32) -> Result<(), Box<dyn Error>> {
        self.git(&["merge", "--quiet", "--squash", self.works[task as usize].as_str()])?;
        self.git(&["commit", "-qm", "Do it"])
    }

    fn land(&self, tip: &Oid, task: u32) -> Result<Oid, Box<dyn Error>> {
        let reference = "refs/refrain/plans/bench";
        if task == 0 {
            self.repository.move_reference(reference, None, tip, "begin")?;
        }
        let (work, index) = (&self.works[task as usize], &self.dir.join("index"));
        let base = &self.begin;
        let merged =
            self.repository.merge(MergeRequest { base, tip, work, except: &[], index, cancel: None })?;
        let MergeResult::Clean { tree } = merged else { return Err("a conflict".into()) };
        let landed = self.repository.land(LandRequest {
            reference,
            tip,
            works: &[Work {
                tree: &tree,
                message: "Do it",
                trailers: &[("Refrain-Plan", "bench"), ("Refrain-Task", &task.to_string())],
            }],
            bounds: Bounds { largest_file: 10 << 20, allow_secrets: &[], cancel: None },
        })?;
        match landed {
            LandingOutcome::Done { mut commits, .. } if commits.len() == 1 => Ok(commits.remove(0)),
            other => Err(format!("{other:?}").into()),
        }
    }

    fn hand_over(&self, to: &Oid) -> Result<(), Box<dyn Error>> {
        let done = self.repository.hand_over(HandOverRequest {
            id: &"bench".parse()?,
            branch: Some("main"),
            expected: &self.begin,
            to,
            why: "refrain: wave 1",
            is_from_sandbox: false,
            index: &self.dir.join("index"),
            cancel: None,
        })?;
        if done == HandedOver::Done { Ok(()) } else { Err(format!("{done:?}").into()) }
    }
}
