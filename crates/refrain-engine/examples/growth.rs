//! How much a loop writes as it runs, and how fast a long one opens: what `cargo xtask bench` asks of the library. Runs
//! 1,010 iterations of an agent that changes a file, and prints one JSON object.

use std::error::Error;
use std::time::Instant;

use camino::Utf8PathBuf;
use refrain_core::event::{AttemptFinished, Event, Exit, Process};
use refrain_core::spec::{AgentKind, AgentSpec, Limits};
use refrain_core::{AttemptId, Record, Spec};
use refrain_engine::{Host, Service, Signals, keeper};
use refrain_store::journal::{self, Durability, Journal};

const ITERATIONS: u32 = 1010;
const LONG: u32 = 10_000;

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().next().as_deref() == Some(keeper::KEEPER_NAME) {
        return Ok(keeper::run()?);
    }
    let dir = tempfile::tempdir()?;
    let dir = Utf8PathBuf::from_path_buf(dir.path().to_owned()).map_err(|_| "not UTF-8")?;
    let project = dir.join("project");
    std::fs::create_dir(&project)?;
    let host = Host {
        program: std::env::current_exe()?,
        env: std::env::vars_os().collect(),
        data_home: dir.join("data"),
        state_home: dir.join("data"),
        config_home: dir.join("data"),
        version: "bench".into(),
    };
    let service = Service::open(&project, host.clone())?;
    let spec = spec(&project)?;
    let id = spec.id.clone();
    let runner = service.start(spec, Some(id.clone()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(runner.drive(&host, Signals::None, || {}))?;

    let records = service.events(&id)?;
    let (at_10, at_1000) = (bytes_of(&records, 10)?, bytes_of(&records, 1000)?);
    let open_ms = open_long(&service, &project)?;
    let figures = serde_json::json!({
        "bytes_per_iteration_at_10": at_10, "bytes_per_iteration_at_1000": at_1000, "open_10k_ms": open_ms,
    });
    #[expect(clippy::print_stdout, reason = "its result is what it prints")]
    {
        println!("{figures}");
    }
    Ok(())
}

fn spec(dir: &Utf8PathBuf) -> Result<Spec, Box<dyn Error>> {
    Ok(Spec {
        promise: Some(refrain_core::promise::Promise {
            text: "COMPLETE".parse()?,
            mode: refrain_core::promise::MatchMode::Plain,
        }),
        limits: Limits { max_iterations: Some(ITERATIONS), ..Limits::default() },
        ..Spec::new(
            "growth".parse()?,
            AgentSpec {
                args: vec!["-c".into(), "echo >> work.txt".into()],
                ..AgentSpec::new(AgentKind::Generic, "sh")
            },
            "Do the next thing.",
            dir.clone(),
        )
    })
}

/// The bytes of the journal that ten iterations around `iteration` made, for one of them.
fn bytes_of(records: &[Record], iteration: u32) -> Result<f64, Box<dyn Error>> {
    let begin = |n| {
        let begun = |record: &Record| matches!(record.event, Event::IterationBegun { iteration, .. } if iteration == n);
        records.iter().position(begun).ok_or("an iteration is missing")
    };
    let lines = &records[begin(iteration - 5)?..begin(iteration + 5)?];
    // A line is its record and 44 bytes around the hash.
    let bytes: usize =
        lines.iter().map(|record| serde_json::to_vec(record).map_or(0, |line| line.len() + 44)).sum();
    Ok(bytes as f64 / 10.0)
}

/// The time to open a journal of 10,000 iterations, the best of five, in milliseconds.
fn open_long(service: &Service, dir: &Utf8PathBuf) -> Result<f64, Box<dyn Error>> {
    let mut spec = spec(dir)?;
    spec.id = "long".parse()?;
    let loop_dir = service.project().loop_dir(&spec.id);
    let started = refrain_core::event::LoopStarted {
        format: refrain_core::event::FORMAT,
        refrain: "bench".into(),
        spec,
    };
    let at = refrain_engine::now();
    let mut journal: Journal = Journal::create(loop_dir.clone(), Event::LoopStarted(Box::new(started)), at)?;
    let recover = journal.state().recover(refrain_core::event::Identity {
        process: Process { pid: 1, start: 1 },
        boot: "boot".into(),
        host: "host".into(),
    });
    journal.push(recover, at)?;
    for iteration in 1..=LONG {
        journal.push(Event::IterationBegun { iteration, work: None }, at)?;
        journal.push(Event::AttemptStarted(AttemptId { iteration, attempt: 1 }), at)?;
        journal.push(Event::AttemptSpawned { process: Process { pid: 1, start: 1 } }, at)?;
        let finished = AttemptFinished {
            stdout_bytes: 1000,
            preview: "The test still fails; the next iteration continues from here.".into(),
            ..AttemptFinished::new(Exit::Code(0))
        };
        journal.push(Event::AttemptFinished(Box::new(finished)), at)?;
    }
    journal.commit(Durability::Synced)?;
    let mut best = f64::MAX;
    for _ in 0..5 {
        let since = Instant::now();
        let snapshot = journal::read(&loop_dir)?;
        best = best.min(since.elapsed().as_secs_f64() * 1e3);
        assert_eq!(snapshot.state.charged, LONG);
    }
    Ok(best)
}
