//! What it costs to look at a plan of ten thousand tasks before it runs: the file read, its graph made and checked, by a
//! program that is started for that alone. A plan of a thousand is beside it, to see that nothing grows faster than the plan.

use std::ffi::OsString;
use std::fmt::Write;

use crate::bench::measure::sample::measure;
use crate::bench::measure::sandbox::Sandbox;
use crate::bench::measure::stats::p10;
use crate::bench::report::{Row, Unit};
use crate::bench::surfaces::subject::Bench;
use crate::failure::Result;
use crate::files::{make_folder, write};

const SUBJECT: &str = "Plans";

/// The files, by their ending, and what they are called in the table.
const SHAPES: [(&str, &str); 3] = [("json", "JSON"), ("scg", "SCUD's graph format"), ("md", "Markdown")];

pub(crate) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let (many, few, rounds) = bench.pick((10_000, 1_000, 15), (1_000, 100, 1));
    let sandbox = Sandbox::new(&bench.tools)?;
    let folder = sandbox.repository().join("plans");
    make_folder(&folder)?;
    let mut words = Vec::new();
    for (ending, _) in SHAPES {
        for count in [many, few] {
            let path = folder.join(format!("{count}.{ending}"));
            write(&path, text(ending, count))?;
            let program = bench.tools.refrain.clone().into_os_string();
            let rest = ["plan", "check", "--verify", "true", "--plan"].map(OsString::from);
            words.push(
                std::iter::once(program).chain(rest).chain([path.into_os_string()]).collect::<Vec<_>>(),
            );
        }
    }
    let (mut cpu, mut wall) = (vec![Vec::new(); words.len()], vec![Vec::new(); words.len()]);
    let mut memory = vec![0.0_f64; words.len()];
    for round in 0..rounds {
        for turn in 0..words.len() {
            let who = (round + turn) % words.len();
            let sample = measure(&bench.tools, &sandbox, &words[who], &[], (1, 0))?;
            cpu[who].push(sample.cpu);
            wall[who].push(sample.wall);
            memory[who] = memory[who].max(sample.max_rss_kib);
        }
    }
    let mut rows = Vec::new();
    for (shape, (_, called)) in SHAPES.iter().enumerate() {
        let (large, small) = (2 * shape, 2 * shape + 1);
        let what = format!("{many} tasks in {called}, loaded and checked");
        rows.push(Row::limit(SUBJECT, format!("{what}: time, p10"), 0.15, p10(&wall[large]), Unit::Time));
        let (of, more) = (format!("{what}: memory, less that for {few}"), memory[large] - memory[small]);
        rows.push(Row::limit(SUBJECT, of, 32.0 * 1024.0, more, Unit::Memory));
        rows.push(Row::cpu(SUBJECT, &what, Some(12.0), &cpu[large], (&format!("{few} tasks"), &cpu[small])));
    }
    Ok(rows)
}

/// A plan of so many tasks, each of which depends on up to three before it; with as much to say of each as people do.
fn text(ending: &str, count: usize) -> String {
    const WORDS: &str =
        "Let it hold what was asked for, tell what it cannot hold, and prove both by a test of its own.";
    let before =
        |task: usize| [1, 7, 31].into_iter().filter(move |back| task > back * 3).map(move |back| task - back);
    let named = |task: usize, mark: &str| {
        before(task).map(|on| format!("{mark}{on}{mark}")).collect::<Vec<_>>().join(", ")
    };
    let mut text = String::new();
    // Writing to a text cannot fail.
    let mut add = |line: std::fmt::Arguments<'_>| _ = text.write_fmt(line);
    let title = |task: usize| format!("Make part {task} of the whole");
    match ending {
        "json" => {
            add(format_args!("{{\n  \"tag\": \"bench\",\n  \"tasks\": ["));
            for task in 1..=count {
                let comma = if task > 1 { "," } else { "" };
                add(format_args!(
                    "{comma}\n    {{\n      \"id\": {task},\n      \"title\": \"{}\",\n      \"description\": \"{WORDS}\",\n      \
                     \"status\": \"pending\",\n      \"complexity\": 5,\n      \"priority\": \"high\",\n      \
                     \"depends_on\": [{}],\n      \"test_strategy\": \"{WORDS}\"\n    }}",
                    title(task),
                    named(task, "")
                ));
            }
            add(format_args!("\n  ]\n}}\n"));
        }
        "scg" => {
            add(format_args!("# SCUD Graph v1\n# Phase: bench\n\n@nodes\n"));
            (1..=count).for_each(|task| add(format_args!("{task} | {} | P | 5 | H\n", title(task))));
            add(format_args!("\n@edges\n"));
            for task in 1..=count {
                before(task).for_each(|on| add(format_args!("{task} -> {on}\n")));
            }
            add(format_args!("\n@details\n"));
            (1..=count).for_each(|task| add(format_args!("{task} | description |\n  {WORDS}\n")));
        }
        _ => {
            add(format_args!("# Bench\n\n"));
            for task in 1..=count {
                let title = title(task);
                add(format_args!(
                    "## Task {task}: {title}\n\nDepends on: {}\n\n{WORDS}\n\n- [ ] do it\n\n",
                    named(task, "")
                ));
            }
        }
    }
    text
}
