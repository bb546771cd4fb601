//! What a plan adds to the time of its agents: eight of them at once, with worktrees, commits and merges, against the same
//! by hand; and a graph of layers, whose speed-up over one after another is held against the bound that the graph gives.
//!
//! The agents sleep, so that a busy machine is in the figures only with what is done around them.

use std::ffi::OsString;
use std::fmt::Write;

use crate::bench::measure::sample::{Sample, measure};
use crate::bench::measure::sandbox::Sandbox;
use crate::bench::measure::stats::{median, median_ratio};
use crate::bench::measure::strace;
use crate::bench::report::{Row, Unit, Verdict};
use crate::bench::surfaces::subject::Bench;
use crate::failure::{Result, fail};
use crate::files::{make_folder, write};
use crate::process::capture;

const SUBJECT: &str = "Plans at work";

/// The agent: it sleeps for as long as the title of its task says, in the first line of the prompt, and writes a file: `NOTE PROMPT`.
const WORKER: &str = r#"IFS= read -r line <<END
$2
END
sleep "${line##* }"
task=${line#* task }; task=${task%% *}
echo "$line" > "src/made-$task.txt"
echo x >> "$1"
echo TASK_COMPLETE
"#;

/// The same by hand: a worktree each, the agents at once, then a commit and a merge each: `WORKER RUNS TASKS SECONDS TREES`.
const BY_HAND: &str = r#"set -e
for k in $(seq "$3"); do git worktree add -q -b "t$k" "$5/$k"; done
for k in $(seq "$3"); do
  (cd "$5/$k" && exec sh "$1" "$2" "You work on task $k of bench: Sleeps $4" > /dev/null) &
done
wait
for k in $(seq "$3"); do
  git -C "$5/$k" add -A; git -C "$5/$k" commit -q -m "Task $k"
  git merge -q --no-ff -m "Merge task $k" "t$k"
done
"#;

/// Layers of three; each task comes after two of the layer before. How long each takes, in tenths of a second.
const LAYERS: [[u32; 3]; 4] = [[4, 10, 6], [12, 3, 8], [5, 9, 4], [7, 2, 10]];

/// A task of a graph: how long its agent takes, in tenths of a second, and what comes before it, by their places.
struct Task {
    tenths: u32,
    after: Vec<usize>,
}

pub(crate) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = side_by_side(bench)?;
    rows.extend(layers(bench)?);
    Ok(rows)
}

/// One wave of tasks that take as long as each other.
fn side_by_side(bench: &Bench) -> Result<Vec<Row>> {
    let (rounds, jobs, tenths) = bench.pick((5, 8, 10), (1, 2, 1));
    let tasks: Vec<Task> = (0..jobs).map(|_| Task { tenths, after: Vec::new() }).collect();
    let jobs_text = jobs.to_string();
    let (mut ours, mut by_hand) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        for turn in 0..2 {
            let sandbox = laid(bench, &tasks)?;
            if (round + turn) % 2 == 0 {
                ours.push(plan(bench, &sandbox, &tasks, &["--jobs", &jobs_text])?);
            } else {
                let (script, trees) = (sandbox.note("by-hand.sh"), sandbox.note("trees"));
                write(&script, BY_HAND)?;
                let mut words: Vec<OsString> = vec!["sh".into(), script.into()];
                words.extend([sandbox.note("worker").into(), sandbox.note("count").into()]);
                words.extend([OsString::from(&jobs_text), seconds(tenths).into(), trees.into()]);
                by_hand.push(done(bench, &sandbox, &words, tasks.len())?);
            }
        }
    }
    let ideal = f64::from(tenths) / 10.0;
    let each = |of: fn(&Sample) -> f64, less: f64, samples: &[Sample]| -> Vec<f64> {
        samples.iter().map(|sample| (of(sample) - less) / f64::from(jobs)).collect()
    };
    let share =
        |samples: &[Sample]| ideal / median(&each(|sample| sample.wall, 0.0, samples)) / f64::from(jobs);
    let what = format!("{jobs} tasks of {} s at once", seconds(tenths));
    let floor = "worktree add, commit, merge by hand";
    let (share, theirs) = (share(&ours), share(&by_hand));
    let mut rows = vec![
        Row {
            goal: ">= 0.85 x by hand".into(),
            ours: format!("{:.1} %", share * 100.0),
            floor: format!("{floor} {:.1} %", theirs * 100.0),
            ratio: format!("{:.2}", share / theirs),
            verdict: if share >= 0.85 * theirs { Verdict::Pass } else { Verdict::Missed },
            ..Row::reported(SUBJECT, format!("{what}: of the ideal"), share, Unit::Count)
        },
        Row::time(
            SUBJECT,
            &format!("{what}: what a task takes beside its agent"),
            Some(3.0),
            &each(|sample| sample.wall, ideal, &ours),
            (floor, &each(|sample| sample.wall, ideal, &by_hand)),
        )
        .aiming_at(1.5),
        // The agents' own is in both.
        Row::cpu(
            SUBJECT,
            &format!("{what}: one task with its agent"),
            Some(3.5),
            &each(|sample| sample.cpu, 0.0, &ours),
            (floor, &each(|sample| sample.cpu, 0.0, &by_hand)),
        )
        .aiming_at(1.5),
    ];
    let Some(strace) = &bench.tools.strace else {
        rows.push(Row::skipped(SUBJECT, "git processes and syncs of a task", "strace is not installed"));
        return Ok(rows);
    };
    let sandbox = laid(bench, &tasks)?;
    let tally = strace::count(strace, &sandbox, &words(bench, &sandbox, &["--jobs", &jobs_text]), 0)?;
    let each = |count: u64| count as f64 / f64::from(jobs);
    for (counted, count) in [("git processes", tally.git), ("fsync, fdatasync and their like", tally.syncs)] {
        rows.push(Row::reported(SUBJECT, format!("{what}: {counted}, for each"), each(count), Unit::Count));
    }
    Ok(rows)
}

/// Layers of tasks with dependencies, with a few jobs; in waves and as a pipeline.
fn layers(bench: &Bench) -> Result<Vec<Row>> {
    let ways = [(1, false), (2, false), (4, false), (2, true), (4, true)];
    let (rounds, upto, ways) = bench.pick((2, LAYERS.len(), &ways[..]), (1, 1, &ways[..2]));
    let tasks: Vec<Task> = (0..upto)
        .flat_map(|layer| (0..3).map(move |place| (layer, place)))
        .map(|(layer, place)| Task {
            tenths: LAYERS[layer][place],
            after: layer.checked_sub(1).map_or_else(Vec::new, |above| {
                [place, (place + 1) % 3].map(|before| above * 3 + before).into()
            }),
        })
        .collect();
    let mut walls = vec![Vec::new(); ways.len()];
    for round in 0..rounds {
        for turn in 0..ways.len() {
            let who = (round + turn) % ways.len();
            let (jobs, pipeline) = ways[who];
            let jobs = jobs.to_string();
            let options = ["--jobs", &jobs, "--pipeline"];
            let sandbox = laid(bench, &tasks)?;
            let sample = plan(bench, &sandbox, &tasks, &options[..if pipeline { 3 } else { 2 }])?;
            walls[who].push(sample.wall);
        }
    }
    let one_by_one = f64::from(tasks.iter().map(|task| task.tenths).sum::<u32>()) / 10.0;
    let ideal = bound(&tasks, ways[0]);
    let mut rows = vec![Row {
        floor: format!("its agents {}", Unit::Time.show(ideal)),
        ratio: format!("{:.3}", median(&walls[0]) / ideal),
        ..Row::reported(
            SUBJECT,
            format!("{} tasks in {upto} layers, --jobs 1: time, median", tasks.len()),
            median(&walls[0]),
            Unit::Time,
        )
    }];
    for (way, wall) in ways.iter().zip(&walls).skip(1) {
        let mode = if way.1 { " --pipeline" } else { "" };
        let (most, reached) = (one_by_one / bound(&tasks, *way), median_ratio(&walls[0], wall));
        rows.push(Row {
            ours: format!("{reached:.2} x"),
            floor: format!("bound of the graph {most:.2} x"),
            ratio: format!("{:.3}", reached / most),
            ..Row::reported(
                SUBJECT,
                format!("the same, --jobs {}{mode}: as fast as --jobs 1", way.0),
                reached,
                Unit::Count,
            )
        });
    }
    Ok(rows)
}

/// A lower bound of the time of every order of the tasks, in seconds: its longest chain, and the work divided by its
/// jobs; with barriers, the sum of each layer's bound.
fn bound(tasks: &[Task], (jobs, pipeline): (u32, bool)) -> f64 {
    let mut chains: Vec<(usize, u32)> = Vec::new();
    for task in tasks {
        let before = task.after.iter().map(|on| chains[*on]);
        let (layer, chain) =
            before.fold((0, 0), |(layer, chain), (its, long)| (layer.max(its + 1), chain.max(long)));
        chains.push((layer, chain + task.tenths));
    }
    let of = |longest: u32, all: u32| f64::from(longest).max(f64::from(all) / f64::from(jobs)) / 10.0;
    if pipeline {
        let longest = chains.iter().map(|(_, chain)| *chain).max();
        return of(longest.unwrap_or_default(), tasks.iter().map(|task| task.tenths).sum());
    }
    let layers = chains.iter().map(|(layer, _)| layer + 1).max().unwrap_or_default();
    (0..layers)
        .map(|layer| {
            let its =
                tasks.iter().zip(&chains).filter(|(_, (of, _))| *of == layer).map(|(task, _)| task.tenths);
            of(its.clone().max().unwrap_or_default(), its.sum())
        })
        .sum()
}

/// A sandbox with a repository of fifty files more, the tasks, and the agent beside it.
fn laid(bench: &Bench, tasks: &[Task]) -> Result<Sandbox> {
    let sandbox = Sandbox::new(&bench.tools)?;
    let (source, scud) = (sandbox.repository().join("src"), sandbox.repository().join(".scud/tasks"));
    make_folder(&source)?;
    make_folder(&scud)?;
    for file in 0..50 {
        write(&source.join(format!("part-{file}.txt")), format!("This is part {file}.\n").repeat(20))?;
    }
    let mut text = "{\n  \"tag\": \"bench\",\n  \"tasks\": [".to_owned();
    for (place, task) in tasks.iter().enumerate() {
        let after: Vec<_> = task.after.iter().map(|on| (on + 1).to_string()).collect();
        let comma = if place > 0 { "," } else { "" };
        // Writing to a text cannot fail.
        let _ = write!(
            text,
            "{comma}\n    {{\"id\": {}, \"title\": \"Sleeps {}\", \"status\": \"pending\", \"depends_on\": [{}]}}",
            place + 1,
            seconds(task.tenths),
            after.join(", ")
        );
    }
    write(&scud.join("bench.json"), text + "\n  ]\n}\n")?;
    write(&sandbox.note("worker"), WORKER)?;
    for words in [&["add", "-A"][..], &["commit", "-q", "-m", "lay"]] {
        capture(sandbox.command("git").args(words))?;
    }
    Ok(sandbox)
}

fn seconds(tenths: u32) -> String {
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// `refrain plan run` on what lies in the sandbox.
fn words(bench: &Bench, sandbox: &Sandbox, options: &[&str]) -> Vec<OsString> {
    let agent = format!("sh {} {}", sandbox.note("worker").display(), sandbox.note("count").display());
    let mut words = vec![bench.tools.refrain.clone().into_os_string()];
    words.extend(["plan", "run", "--tag", "bench", "--verify", "true", "--quiet"].map(OsString::from));
    words.extend(["--command".into(), agent.into()]);
    words.extend(options.iter().map(OsString::from));
    words
}

fn plan(bench: &Bench, sandbox: &Sandbox, tasks: &[Task], options: &[&str]) -> Result<Sample> {
    done(bench, sandbox, &words(bench, sandbox, options), tasks.len())
}

/// Measures, and fails unless each agent ran once and its work is on the branch.
fn done(bench: &Bench, sandbox: &Sandbox, words: &[OsString], tasks: usize) -> Result<Sample> {
    let sample = measure(&bench.tools, sandbox, words, &[], (1, 0))?;
    let runs = capture(sandbox.command("wc").arg("-l").arg(sandbox.note("count")))?;
    let made = capture(sandbox.command("git").args(["ls-tree", "--name-only", "HEAD", "src/"]))?;
    let made = made.lines().filter(|name| name.contains("made-")).count();
    if made != tasks || !runs.starts_with(&format!("{tasks} ")) {
        return fail(format!(
            "of {tasks} tasks {made} are on the branch, and the agents noted {}",
            runs.trim()
        ));
    }
    Ok(sample)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_bounds_how_fast_it_can_be() {
        let task = |tenths, after: &[usize]| Task { tenths, after: after.to_vec() };
        let tasks = [task(10, &[]), task(2, &[]), task(2, &[0]), task(10, &[1])];
        for (way, expected) in
            [((1, false), 2.4), ((2, false), 2.0), ((1, true), 2.4), ((2, true), 1.2), ((9, true), 1.2)]
        {
            assert!((bound(&tasks, way) - expected).abs() < 1e-9, "{way:?}: {}", bound(&tasks, way));
        }
    }
}
