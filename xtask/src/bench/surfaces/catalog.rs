//! What it costs to list ten thousand loops that have stopped, in twenty projects, in the terminal and page by page in a
//! browser, and to add up what they used; against
//! reading and parsing a JSON file for each of them, which is what one would do without a catalog.
//!
//! The loops are made by an example of refrain-engine, which knows the library: `catalog BASE LOOPS`.

use std::ffi::OsString;
use std::time::Instant;

use crate::bench::measure::sample::measure;
use crate::bench::measure::sandbox::Sandbox;
use crate::bench::report::{Row, Unit};
use crate::bench::surfaces::serving::Served;
use crate::bench::surfaces::subject::Bench;
use crate::failure::{Result, fail};
use crate::process::capture;

const SUBJECT: &str = "Many loops";
const FLOOR: &str = "a JSON file each";

/// The commands, and the goal of each as a multiple of the floor.
const ASKED: [(&str, &[&str], Option<f64>); 4] = [
    ("list --all-projects", &["list", "--all-projects"], Some(0.5)),
    ("list --all-projects --json", &["list", "--all-projects", "--json"], Some(0.5)),
    ("list of one project of twenty", &["list"], None),
    ("usage --all-projects", &["usage", "--all-projects", "--by", "project"], None),
];

pub(crate) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let (loops, rounds) = bench.pick((10_000, 15), (200, 1));
    let sandbox = Sandbox::new(&bench.tools)?;
    let base = sandbox.note("");
    capture(bench.tools.example("catalog").arg(&base).arg(loops.to_string()))?;

    let one = base.join("projects/project-00").into_os_string();
    let refrain = |words: &[&str]| -> Vec<OsString> {
        let program = [bench.tools.refrain.clone().into_os_string(), "-C".into(), one.clone()];
        program.into_iter().chain(words.iter().map(Into::into)).collect()
    };
    let floor = vec![bench.tools.parse.clone().into_os_string(), base.join("status").into_os_string()];

    // No runner has cataloged these loops: the first `list` makes the catalog.
    let from = Instant::now();
    let listed = capture(sandbox.command(&bench.tools.refrain).args(["list", "--all-projects"]))?;
    let first = from.elapsed().as_secs_f64();
    if listed.lines().count() != loops {
        return fail(format!("{} loops are listed, not {loops}", listed.lines().count()));
    }
    let words: Vec<Vec<OsString>> =
        std::iter::once(floor).chain(ASKED.iter().map(|(_, words, _)| refrain(words))).collect();
    let (mut cpu, mut wall) = (vec![Vec::new(); words.len()], vec![Vec::new(); words.len()]);
    for round in 0..rounds {
        for turn in 0..words.len() {
            let who = (round + turn) % words.len();
            let sample = measure(&bench.tools, &sandbox, &words[who], &[], (1, 0))?;
            cpu[who].push(sample.cpu);
            wall[who].push(sample.wall);
        }
    }
    let mut rows = Vec::new();
    for (who, (what, _, goal)) in (1..).zip(ASKED) {
        rows.push(Row::cpu(SUBJECT, what, goal, &cpu[who], (FLOOR, &cpu[0])));
        rows.push(Row::wall(SUBJECT, what, goal, &wall[who], (FLOOR, &wall[0])));
    }
    rows.push(Row::reported(SUBJECT, "the first list, which makes the catalog: time", first, Unit::Time));
    rows.extend(pages(bench, &sandbox, loops)?);
    Ok(rows)
}

/// Pages of the dashboard's list: the first, one in the middle, the last.
fn pages(bench: &Bench, sandbox: &Sandbox, loops: usize) -> Result<Vec<Row>> {
    let served = Served::begin(bench, sandbox)?;
    let last = loops.div_ceil(100);
    let numbers = [1, last.div_ceil(2), last];
    let (mut pages, mut asset) = (vec![Vec::new(); numbers.len()], Vec::new());
    for _ in 0..bench.pick(30, 1) {
        for (number, page) in numbers.iter().zip(&mut pages) {
            page.push(served.site.read(&format!("/?page={number}"))?.0);
        }
        asset.push(served.site.read("/style.css")?.0);
    }
    let row = |(number, page): (&usize, &Vec<f64>)| {
        let what = format!("page {number} of {last} of the dashboard's list, of {loops} loops");
        Row::wall(SUBJECT, &what, None, page, ("the stylesheet", &asset))
    };
    Ok(numbers.iter().zip(&pages).map(row).collect())
}
