//! The dashboard with a thousand loops of which fifty run: how soon it is there, how soon what happens is on the screen, what
//! fifty open pages cost, and that nothing is done while nothing happens.
//!
//! The loops are made, and driven, by an example of refrain-engine: `catalog BASE LOOPS RUNNING`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::spawn;
use std::time::{Duration, Instant};

use crate::bench::measure::proc_fs::voluntary_switches;
use crate::bench::measure::sandbox::Sandbox;
use crate::bench::measure::stats::{median, p99};
use crate::bench::report::{Row, Unit};
use crate::bench::surfaces::running::PATIENCE;
use crate::bench::surfaces::serving::{Driven, Reader, Served, notices};
use crate::bench::surfaces::subject::Bench;
use crate::bench::surfaces::web::{Browser, LOOK};
use crate::failure::{Doing, Result, fail};
use crate::process::{capture, pause, wall_clock_ns};

const SUBJECT: &str = "Dashboard";
/// Between two readings of the list.
const LIST_PAUSE: Duration = Duration::from_millis(20);

pub(crate) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let (loops, running) = bench.pick((1000, 50), (60, 5));
    let sandbox = Sandbox::new(&bench.tools)?;
    let program = bench.tools.example_path("catalog");
    let mut driven = Driven::begin(&sandbox, program, loops - running, running)?;
    let served = Served::begin(bench, &sandbox)?;
    let mut rows = vec![Row::reported(SUBJECT, "memory at rest (PSS)", served.memory()?, Unit::Memory)];
    rows.extend(first_page(bench, &sandbox, &served, loops, running)?);
    rows.extend(news(bench, &served, &mut driven)?);
    let browser = Browser::is_installed().then(|| Browser::open(&sandbox)).transpose()?;
    rows.extend(screen(bench, browser.as_ref(), &served, &mut driven)?);
    rows.extend(pages(bench, &served, &mut driven)?);
    drop(browser);
    drop(driven);
    rows.extend(idle(bench, &served)?);
    Ok(rows)
}

/// How long it takes until all is there, against the command line that lists the same rows.
fn first_page(
    bench: &Bench,
    sandbox: &Sandbox,
    served: &Served,
    loops: usize,
    running: usize,
) -> Result<Vec<Row>> {
    let (rounds, floor) = (bench.pick(30, 2), "list --all-projects --json");
    let (mut page, mut answer, mut asset, mut listed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut size = 0;
    for round in 0..=rounds {
        let list = Instant::now();
        capture(sandbox.command(&bench.tools.refrain).args(["list", "--all-projects", "--json"]))?;
        let list = list.elapsed().as_secs_f64();
        let (first, text) = served.site.read("/")?;
        let all = served.site.read(&format!("/api/v1/loops?limit={loops}"))?.0;
        let fixed = served.site.read("/style.css")?.0;
        size = text.len();
        // The first round makes the catalog.
        if round > 0 {
            page.push(first);
            answer.push(all);
            asset.push(fixed);
            listed.push(list);
        }
    }
    let of = format!("{loops} loops, {running} run");
    Ok(vec![
        Row::wall(SUBJECT, &format!("first page, {of}"), Some(1.0), &page, (floor, &listed)),
        Row::reported(SUBJECT, "first page: time, p99", p99(&page), Unit::Time),
        Row::wall(SUBJECT, &format!("GET /api/v1/loops, all of {of}"), Some(1.0), &answer, (floor, &listed)),
        Row::wall(SUBJECT, "first page", None, &page, ("the stylesheet", &asset)),
        Row::reported(SUBJECT, "first page: size", size as f64, Unit::Bytes),
    ])
}

/// How soon a subscriber receives an event, against the system's own file notification.
fn news(bench: &Bench, served: &Served, driven: &mut Driven) -> Result<Vec<Row>> {
    let rounds = bench.pick(400, 10);
    let (heard, told) = channel();
    let events = served.site.listen()?;
    spawn(move || events.map_while(|(name, _)| heard.send((name, wall_clock_ns())).ok()).count());
    let notices = notices(&driven.journals())?;
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let (number, at) = (round % driven.names.len(), driven.go_on(round % driven.names.len())?);
        floor.push(behind(at, &notices, |found| *found == number)?);
        ours.push(behind(at, &told, |found| *found == driven.names[number])?);
        // As far apart that each is news of its own.
        pause(Duration::from_millis(5));
    }
    let row = |what: &str, most, of: fn(&[f64]) -> f64| {
        let what = format!("a journal's append to its listeners: {what}");
        Row::limit(SUBJECT, what, most, of(&ours), Unit::Time).beside("inotify alone", of(&floor), Unit::Time)
    };
    Ok(vec![row("median", 0.02, median), row("p99", 0.05, p99)])
}

/// How soon it is on the screen: the moment at which the page's running loops are shown anew; its times tick by themselves.
fn screen(
    bench: &Bench,
    browser: Option<&Browser>,
    served: &Served,
    driven: &mut Driven,
) -> Result<Vec<Row>> {
    let what = "a journal's append to the page on the screen, in Chromium";
    let Some(browser) = browser else {
        return Ok(vec![Row::skipped(SUBJECT, what, "there is no chromedriver (Debian: chromium-driver)")]);
    };
    browser.go(&served.open)?;
    browser.run(
        "window.seen = []; const is_news = (change) => change.target.nodeName !== 'TIME';\
         new MutationObserver((changes) => changes.some(is_news) && window.seen.push(performance.timeOrigin + performance.now()))\
         .observe(document.getElementById('running'), {childList: true, subtree: true});",
    )?;
    let mut took = Vec::new();
    for round in 0..bench.pick(40, 3) {
        // After a quiet period, as for a person who looks at it.
        pause(Duration::from_millis(700));
        browser.run("window.seen = [];")?;
        let at = driven.go_on(round % driven.names.len())?;
        let began = Instant::now();
        let seen = loop {
            // Not asked while it is at work: each question takes time of the page's own thread.
            pause(LOOK);
            if let Some(seen) = browser.run("return window.seen[0] ?? null;")?.as_f64() {
                break seen;
            }
            if began.elapsed() > PATIENCE {
                return fail("the page does not change");
            }
        };
        took.push(seen / 1e3 - at as f64 / 1e9);
    }
    Ok(vec![
        Row::limit(SUBJECT, format!("{what}: median"), 0.15, median(&took), Unit::Time),
        Row::limit(SUBJECT, format!("{what}: p99"), 0.3, p99(&took), Unit::Time),
    ])
}

/// Fifty pages, each read anew at its news while all loops record: half of them of a loop of their own, half of the same; and
/// the list in the browser. Meanwhile the list and the stylesheet are read in turn, each over a connection of its own.
fn pages(bench: &Bench, served: &Served, driven: &mut Driven) -> Result<Vec<Row>> {
    let (open, seconds, each) = (bench.pick(50, 5), bench.pick(10, 1), 2);
    let project = served.project()?;
    let shown = |number: usize| if number.is_multiple_of(2) { number % driven.names.len() } else { 0 };
    let readers: Vec<_> = (0..open)
        .map(|number| Reader::open(&served.site, &project, &driven.names[shown(number)]))
        .collect::<Result<_>>()?;
    let is_over = Arc::<AtomicBool>::default();
    let (site, ends) = (served.site.clone(), Arc::clone(&is_over));
    let in_turn = spawn(move || {
        let (mut list, mut asset) = (Vec::new(), Vec::new());
        while !ends.load(Ordering::Relaxed) {
            pause(LIST_PAUSE);
            // One that is refused, because the readers have all 64 connections of the token, is tried again.
            let (Ok(page), Ok(style)) = (site.read("/"), site.read("/style.css")) else { continue };
            list.push(page.0);
            asset.push(style.0);
        }
        (list, asset)
    });
    let (before, began) = (served.cpu()?, Instant::now());
    let mut recorded = 0;
    while began.elapsed() < Duration::from_secs(seconds) {
        for number in 0..driven.names.len() {
            driven.go_on(number)?;
            recorded += 1;
            let due = Duration::from_secs_f64(f64::from(recorded) / (each * driven.names.len()) as f64);
            pause(due.saturating_sub(began.elapsed()));
        }
    }
    let percent = (served.cpu()? - before) / began.elapsed().as_secs_f64() * 100.0;
    let memory = served.memory()?;
    is_over.store(true, Ordering::Relaxed);
    let Some((list, asset)) = in_turn.join().ok().filter(|(list, _)| !list.is_empty()) else {
        return fail("the list was never read");
    };
    // They end with the next news.
    readers.iter().for_each(Reader::stop);
    (0..driven.names.len()).try_for_each(|number| driven.go_on(number).map(drop))?;
    let took: Vec<f64> = readers.into_iter().flat_map(Reader::took).collect();
    let what = format!("{open} open pages, each loop records {each} times a second");
    Ok(vec![
        Row::limit(SUBJECT, format!("{what}: CPU in percent of a core"), 50.0, percent, Unit::Count),
        Row::limit(SUBJECT, format!("{what}: a page, p99"), 0.1, p99(&took), Unit::Time),
        Row::reported(
            SUBJECT,
            format!("{what}: pages read a second"),
            took.len() as f64 / seconds as f64,
            Unit::Count,
        ),
        // Half of what a person notices. It looks at each journal: a stylesheet from memory takes a hundredth of that.
        Row::limit(SUBJECT, format!("{what}: the list, p99"), 0.05, p99(&list), Unit::Time),
        Row::reported(SUBJECT, format!("{what}: the list, median"), median(&list), Unit::Time),
        Row::reported(
            SUBJECT,
            format!("{what}: the list, p99, in fetches of the stylesheet"),
            p99(&list) / median(&asset),
            Unit::Count,
        ),
        Row::reported(SUBJECT, format!("{what}: the stylesheet, median"), median(&asset), Unit::Time),
        Row::reported(SUBJECT, format!("{what}: the stylesheet, p99"), p99(&asset), Unit::Time),
        Row::limit(SUBJECT, format!("{what}: memory (PSS)"), 64.0 * 1024.0, memory, Unit::Memory),
    ])
}

/// A subscriber is connected, and nothing happens.
fn idle(bench: &Bench, served: &Served) -> Result<Vec<Row>> {
    let window = Duration::from_millis(bench.pick(10_000, 500));
    let mut events = served.site.listen()?;
    // Earlier clients are gone, and the first `alive` has come: until the next one no event is due.
    if !bench.smoke && !events.any(|(_, name)| name == "alive") {
        return fail("the server does not show that it is there");
    }
    pause(window / 10);
    let look = || Ok((voluntary_switches(served.pid()).unwrap_or_default(), served.cpu()?));
    let before = look()?;
    pause(window);
    let after = look()?;
    let what = format!("a client listens, nothing happens: in {:.1} s", window.as_secs_f64());
    Ok(vec![
        Row::limit(SUBJECT, format!("{what}, wake-ups"), 0.0, (after.0 - before.0) as f64, Unit::Count),
        Row::limit(SUBJECT, format!("{what}, CPU"), 0.0, after.1 - before.1, Unit::Time),
    ])
}

/// The time from a moment to the arrival of the matching event, in seconds; others are ignored.
fn behind<T>(at: u128, from: &Receiver<(T, u128)>, is_it: impl Fn(&T) -> bool) -> Result<f64> {
    loop {
        let (what, seen) = from.recv_timeout(PATIENCE).doing("wait for the news")?;
        if is_it(&what) {
            return Ok(seen.saturating_sub(at) as f64 / 1e9);
        }
    }
}
