//! What listing many loops would cost without a catalog, if each kept its status in a JSON file: read and parse every file of
//! a folder. Only what a list shows is kept of each, and nothing is printed but their number.

use std::error::Error;

/// What a list shows of a loop.
#[derive(serde::Deserialize)]
struct Status {
    id: String,
    status: String,
    iteration: u32,
    max_iterations: Option<u32>,
    updated_at: String,
    project: String,
    reason: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: bench_parse FOLDER")?;
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let status: Status = serde_json::from_slice(&std::fs::read(entry?.path())?)?;
        all.push(status);
    }
    let told = |status: &Status| {
        let words = [&status.id, &status.status, &status.updated_at, &status.project, &status.reason];
        words.iter().all(|word| !word.is_empty())
            && status.max_iterations.is_none_or(|cap| status.iteration <= cap)
    };
    #[expect(clippy::print_stdout, reason = "its result is what it prints")]
    {
        println!("{}", all.iter().filter(|status| told(status)).count());
    }
    Ok(())
}
