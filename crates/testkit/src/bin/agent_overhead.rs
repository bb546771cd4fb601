//! What Refrain adds to the runs of a real agent program, for `cargo xtask bench agents`. A round is so many bare runs one
//! after another, as many once more, and one loop of so many iterations, in turns, each in a fresh repository with a fresh
//! home, asking a model that always answers "not yet" at once. One line of JSON a round: wall and CPU milliseconds per run.
//! The second bare runs are the control: what they differ from the first is the machine's mood and says what a ratio is worth.
//!
//! The caller that set `TMPDIR` deletes the folders: deleting them here would make the files of the next ones slower.
//!
//! A bare run is not what we believe Refrain to start but what it did start: a loop of one iteration, whose agent is a
//! script that notes its arguments, environment and standard input, comes first. Its output goes to files. Bare runs are
//! started by a process of their own, in a session of its own, as iterations are by the keeper: where the machine is busy,
//! Linux shares it out by sessions.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool for the people who build Refrain")]
#![expect(clippy::expect_used, reason = "it fails with what it saw, like the tests whose kit it uses")]

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use rustix::fs::syncfs;
use rustix::process::{WaitOptions, getpid, set_child_subreaper, wait};
use serde_json::{Value, json};
use testkit::{Agent, Invocation, Model, Real, Sandbox, Script, Turn, write};

/// After how long a round is taken for hung.
const LIMIT: Duration = Duration::from_secs(300);
const TASK: &str = "Do the next item of the plan.";
/// The exit code of a loop that runs into its cap.
const AT_CAP: i32 = 10;
/// The argument that makes this program the process that starts bare runs.
const BARE: &str = "--bare";
/// The standard input of bare runs, by its path in a sandbox.
const STDIN: &str = "../notes/prompt";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [word, runs, program, args @ ..] = words.as_slice()
        && word == BARE
    {
        println!("{}", run_bare(runs.parse().expect("we gave it a number"), program, args));
        return ExitCode::SUCCESS;
    }
    let Some((refrain, agent, rounds, runs)) = asked(&words) else {
        eprintln!("usage: agent_overhead REFRAIN {:?} ROUNDS RUNS", Agent::ALL.map(Agent::name));
        return ExitCode::FAILURE;
    };
    if agent.program().is_none() {
        println!("{}", json!({ "not_installed": agent.version() }));
        return ExitCode::SUCCESS;
    }
    let recorded = RecordedCall::make(&refrain, agent);
    for round in 0..rounds {
        let mut took = [Durations { wall: f64::NAN, cpu: f64::NAN }; 3];
        for turn in 0..took.len() {
            let who = (round as usize + turn) % took.len();
            let place = OverheadProject::new(&refrain, agent);
            took[who] = if who == 0 { place.looped(runs) } else { place.bare(&recorded, runs) };
        }
        let [looped, bare, control] = took;
        let round = json!({
            "agent": agent.name(), "version": agent.version(),
            "loop_ms": looped.wall, "bare_ms": bare.wall, "control_ms": control.wall,
            "loop_cpu_ms": looped.cpu, "bare_cpu_ms": bare.cpu, "control_cpu_ms": control.cpu,
        });
        println!("{round}");
    }
    ExitCode::SUCCESS
}

fn asked(words: &[String]) -> Option<(String, Agent, u32, u32)> {
    let [refrain, agent, rounds, runs] = words else { return None };
    let agent = Agent::ALL.into_iter().find(|known| known.name() == agent)?;
    // It is run in another folder.
    let refrain = std::fs::canonicalize(refrain).ok()?.into_os_string().into_string().ok()?;
    Some((refrain, agent, rounds.parse().ok()?, runs.parse().ok()?))
}

/// A fresh repository and home, a model, and the program that asks it.
struct OverheadProject {
    sandbox: Sandbox,
    model: Model,
    real: Real,
}

impl OverheadProject {
    fn new(refrain: &str, agent: Agent) -> Self {
        let mut sandbox = Sandbox::new(refrain);
        sandbox.keep();
        let model = Model::start(Script::new([]).then(Turn::say("not yet")));
        let real = Real::new(agent, &model.url(), &sandbox.root().join("home"));
        // Sync first, so that the loop's first sync does not wait for these files.
        let folder = File::open(sandbox.root()).expect("it was just made");
        syncfs(folder).expect("what was written can be synced");
        Self { sandbox, model, real }
    }

    fn start(&self, iterations: u32) -> Invocation {
        let iterations = iterations.to_string();
        // The model makes no progress, so the loop must not be stuck before its last iteration.
        let limits = ["--max-iterations", &iterations, "--stuck-threshold", "100"];
        let mut words = [&["start", "--agent", self.real.agent.name()], &limits[..]].concat();
        let extra: Vec<String> = self.real.extra.iter().map(|word| format!("--agent-arg={word}")).collect();
        words.extend(extra.iter().map(String::as_str));
        words.push(TASK);
        self.sandbox.command(&words).envs(&self.real.env)
    }

    fn looped(&self, runs: u32) -> Durations {
        let cpu = cpu_of_children();
        let from = Instant::now();
        let run = self.start(runs).spawn().wait_at_most(LIMIT);
        let took = Durations { wall: from.elapsed().as_secs_f64() * 1e3, cpu: cpu_of_children() - cpu };
        run.with_code(AT_CAP);
        self.per_run(took, runs)
    }

    fn bare(&self, recorded: &RecordedCall, runs: u32) -> Durations {
        write(&self.sandbox.project().join(STDIN), &recorded.stdin);
        let own = std::env::current_exe().expect("Linux says");
        let number = runs.to_string();
        let mut words = vec!["--wait", own.to_str().expect("it is UTF-8"), BARE, &number];
        words.push(self.real.program.to_str().expect("it is UTF-8"));
        words.extend(recorded.args.iter().map(String::as_str));
        let run = self.sandbox.tool("setsid", &words).envs(&recorded.env_in(self)).spawn();
        let told = run.wait_at_most(LIMIT).with_code(0).json();
        let figure = |key: &str| told[key].as_f64().expect("it is a figure");
        self.per_run(Durations { wall: figure("wall"), cpu: figure("cpu") }, runs)
    }

    /// The share of one run, once it is certain that each has asked the model.
    fn per_run(&self, took: Durations, runs: u32) -> Durations {
        let asked = self.model.prompts().len();
        assert_eq!(asked, runs as usize, "{} did not ask the model once in each run", self.real.agent.name());
        Durations { wall: took.wall / f64::from(runs), cpu: took.cpu / f64::from(runs) }
    }
}

struct RecordedCall {
    args: Vec<String>,
    env: Vec<(String, String)>,
    stdin: String,
    /// The parts of the environment that differ between sandboxes: the root, and the model's URL.
    root: String,
    url: String,
}

impl RecordedCall {
    fn make(refrain: &str, agent: Agent) -> Self {
        let place = OverheadProject::new(refrain, agent);
        let path = |real: &Real| {
            let path = real.env.iter().find(|(name, _)| name == "PATH");
            path.expect("it is given one").1.clone()
        };
        let script = format!(
            "printf '%s\\0' \"$@\" > $NOTES/args\n\
             cat /proc/$$/environ > $NOTES/env\n\
             cat /proc/$$/fd/0 > $NOTES/stdin\n\
             exec {} \"$@\"",
            place.real.program.display()
        );
        let _path = place.sandbox.agent(agent.name(), &script);
        let root = place.sandbox.root().to_str().expect("it is UTF-8").to_owned();
        let first = format!("{root}/agents:{}", path(&place.real));
        place.start(1).env("PATH", &first).spawn().wait_at_most(LIMIT).with_code(AT_CAP);
        let words = |note: &str| {
            let note = place.sandbox.note(note);
            note.split_terminator('\0').map(str::to_owned).collect::<Vec<_>>()
        };
        let env = words("env").into_iter().filter_map(|variable| {
            let (name, value) = variable.split_once('=')?;
            let value = if name == "PATH" { path(&place.real) } else { value.to_owned() };
            Some((name.to_owned(), value))
        });
        let env = env.collect();
        let (args, stdin) = (words("args"), place.sandbox.note("stdin"));
        assert!(stdin.contains(TASK), "the prompt came by standard input: {stdin}");
        eprintln!("{} {}", agent.name(), args.join(" "));
        Self { args, env, stdin, root, url: place.model.url() }
    }

    fn env_in(&self, place: &OverheadProject) -> Vec<(String, String)> {
        let root = place.sandbox.root().to_str().expect("it is UTF-8");
        let here = |value: &String| value.replace(&self.root, root).replace(&self.url, &place.model.url());
        self.env.iter().map(|(name, value)| (name.clone(), here(value))).collect()
    }
}

#[derive(Clone, Copy)]
struct Durations {
    wall: f64,
    cpu: f64,
}

/// Runs a program so many times, one run after another, with this process's environment. Only the runs themselves are
/// measured.
fn run_bare(runs: u32, program: &str, args: &[String]) -> Value {
    // Orphans come to us, as those of an iteration come to the keeper: their CPU is counted in both.
    set_child_subreaper(Some(getpid())).expect("Linux can do that");
    let file =
        |run: u32, end: &str| File::create(format!("../sessions/bare-{run}.{end}")).expect("a fresh file");
    let mut wall = 0.0;
    for number in 0..runs {
        // The lock that a Gemini leaves makes the next one wait: Refrain removes it.
        let _ = fs::remove_dir(Path::new("../home/.gemini/projects.json.lock"));
        #[expect(clippy::disallowed_methods, reason = "it is what is measured")]
        let mut command = Command::new(program);
        command.args(args).stdin(File::open(STDIN).expect("we were given one"));
        command.stdout(file(number, "out")).stderr(file(number, "err"));
        let from = Instant::now();
        let status = command.status().expect("the program starts");
        wall += from.elapsed().as_secs_f64() * 1e3;
        assert!(status.success(), "run {number} of {program} ended with {status}");
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
    }
    json!({ "wall": wall, "cpu": cpu_of_children() })
}

/// CPU milliseconds of all children that were waited for, and of theirs. In steps of ten, which suffices for many runs.
fn cpu_of_children() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("/proc is there");
    // The program's name is in parentheses and may hold anything. The third field and all others follow it.
    let (_, rest) = stat.rsplit_once(')').expect("proc(5)");
    let ticks = rest.split_whitespace().skip(13).take(2).filter_map(|field| field.parse::<f64>().ok());
    // Ticks for user space are hundredths of a second on every Linux.
    ticks.sum::<f64>() * 10.0
}
