//! Many loops in one process, as `cargo xtask bench hosts` measures them: `hosts BASE LOOPS ITERATIONS PAUSE_MS
//! PROGRAM`. Each works in a repository of its own below BASE. Without a pause all run to their cap. With one they are
//! measured while all of them wait, and then paused. Prints one JSON object.

use std::error::Error;
use std::fs;
use std::rc::Rc;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::Spec;
use refrain_core::event::Urgency;
use refrain_engine::{Host, Service, Signals, keeper, raise_open_files, tool};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::LocalSet;

/// The time for idle threads to end; and for how long the sleeping loops are watched.
const SETTLE: Duration = Duration::from_secs(3);

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args();
    if words.next().as_deref() == Some(keeper::KEEPER_NAME) {
        return Ok(keeper::run()?);
    }
    let mut word = || words.next().ok_or("usage: hosts BASE LOOPS ITERATIONS PAUSE_MS PROGRAM");
    let base = Utf8PathBuf::from(word()?);
    let (loops, iterations, pause): (u32, u32, u64) = (word()?.parse()?, word()?.parse()?, word()?.parse()?);
    let program = word()?;
    fs::create_dir_all(&base)?;
    let base = base.canonicalize_utf8()?;
    // A project of its own, beside the folders of the loops: in it these would be listed as changed by each loop.
    let project = base.join("project");
    fs::create_dir_all(&project)?;
    tool::run("git", &["init", "--quiet"], project.as_std_path())?;
    raise_open_files();
    let host = Rc::new(Host {
        program: std::env::current_exe()?,
        env: std::env::vars_os().collect(),
        data_home: base.join("home"),
        state_home: base.join("home"),
        config_home: base.join("home"),
        version: "bench".into(),
    });
    let service = Service::open(&project, (*host).clone())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_keep_alive(Duration::from_secs(1))
        .build()?;
    let (wish, wishes) = watch::channel(None);
    let all = LocalSet::new();
    let (mut journals, mut driven) = (Vec::new(), Vec::new());
    for number in 0..loops {
        let spec = spec(&service, &base, number, (iterations, pause), &program)?;
        let id = spec.id.clone();
        journals.push(service.project().loop_dir(&id).journal());
        let runner = service.start(spec, Some(id))?;
        let (host, signals) = (Rc::clone(&host), Signals::Given(wishes.clone()));
        driven.push(all.spawn_local(async move { runner.drive(&host, signals, || {}).await }));
    }
    let figures = runtime.block_on(all.run_until(async {
        let figures = if pause == 0 { Value::Null } else { look(&journals).await };
        let began = Instant::now();
        if pause > 0 {
            wish.send_replace(Some(Urgency::Now));
        }
        for driven in driven {
            driven.await??;
        }
        Ok::<_, Box<dyn Error>>(json!({"asleep": figures, "end_s": began.elapsed().as_secs_f64()}))
    }))?;
    #[expect(clippy::print_stdout, reason = "its result is what it prints")]
    {
        println!("{figures}");
    }
    Ok(())
}

/// The resources of this process while all the loops of these journals wait.
async fn look(journals: &[Utf8PathBuf]) -> Value {
    for journal in journals {
        while !fs::read_to_string(journal).unwrap_or_default().contains("\"wait.started\"") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    tokio::time::sleep(SETTLE).await;
    let before = ticks();
    tokio::time::sleep(SETTLE).await;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let number = |heading: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(heading))?;
        line.split_whitespace().next()?.parse().ok()
    };
    let own = std::process::id();
    let children = fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
    json!({
        "resident_kib": number("VmRSS:"),
        "peak_kib": number("VmHWM:"),
        "threads": number("Threads:"),
        "files": fs::read_dir("/proc/self/fd").map_or(0, Iterator::count),
        "children": children.split_whitespace().count(),
        "cpu_ticks": ticks().saturating_sub(before),
    })
}

/// The processor time that this process took so far, in ticks of the system's clock.
fn ticks() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields).split(' ');
    fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
}

fn spec(
    service: &Service,
    base: &Utf8Path,
    number: u32,
    (iterations, pause): (u32, u64),
    program: &str,
) -> Result<Spec, Box<dyn Error>> {
    let folder = base.join(format!("work/{number}"));
    fs::create_dir_all(&folder)?;
    tool::run("git", &["init", "--quiet"], folder.as_std_path())?;
    let pause = (pause > 0).then_some(pause);
    Ok(serde_json::from_value(json!({
        "id": format!("task-{number}"),
        "agent": {
            "kind": "generic", "program": program, "args": ["-p"], "env": {}, "clean_env": false, "prompt_mode": "auto"
        },
        "prompt": "Do the next item of the plan.",
        "iteration_context": true,
        "promise": {"text": "COMPLETE", "match": "plain"},
        "limits": {"max_iterations": iterations, "pause_ms": pause},
        "project": service.project().root, "worktree": folder, "working_dir": folder,
        "depth": 0, "stuck": { "threshold": 100 }, "output_cap": Spec::OUTPUT_CAP,
    }))?)
}
